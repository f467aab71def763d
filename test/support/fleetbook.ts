import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

export interface CliResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

const CLI = new URL('../../src/cli.ts', import.meta.url).pathname;

/** Runs the program as a person would; only what `env` gives is in its environment. @param input what it reads, then its end */
export async function fleetbook(
  args: readonly string[],
  env: Record<string, string> = {},
  input = '',
): Promise<CliResult> {
  try {
    const running = promisify(execFile)(process.execPath, [CLI, ...args], {
      env: { PATH: process.env.PATH, ...env },
    });
    // It may end without reading.
    running.child.stdin?.on('error', () => {}).end(input);
    const { stdout, stderr } = await running;
    return { code: 0, stdout, stderr };
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string };
    return { code, stdout, stderr };
  }
}
