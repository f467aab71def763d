import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { CLI } from './program.ts';

export interface CliResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs the program with only the environment of `env`. @param input standard input of the program */
export async function fleetbook(
  args: readonly string[],
  env: Record<string, string> = {},
  input = '',
  program = CLI,
): Promise<CliResult> {
  try {
    const running = promisify(execFile)(process.execPath, [program, ...args], {
      env: { PATH: process.env.PATH, ...env },
    });
    // The program may end without reading.
    running.child.stdin?.on('error', () => {}).end(input);
    const { stdout, stderr } = await running;
    return { code: 0, stdout, stderr };
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string };
    return { code, stdout, stderr };
  }
}
