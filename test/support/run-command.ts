import { AsyncLocalStorage } from 'node:async_hooks';
import fs from 'node:fs';
import { main } from '../../src/cli/commands.ts';
import type { CliResult } from './fleetbook.ts';

interface Output {
  stdout: string;
  stderr: string;
}

const outputs = new AsyncLocalStorage<Output>();
capture('stdout');
capture('stderr');
captureLog();

/**
 * Runs a command in this process, for tests about what it does and prints. A process takes ten times the CPU time; `fleetbook`
 * starts one, for tests about its exit and its input.
 */
export async function runCommand(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<CliResult> {
  const output: Output = { stdout: '', stderr: '' };
  const code = await outputs.run(output, () => main(args, { PATH: process.env.PATH, ...env }));
  return { code, ...output };
}

/** The output of a command goes to its result. Commands may run at the same time. */
function capture(name: keyof Output): void {
  const stream = process[name];
  const write = stream.write.bind(stream);
  const captured = (...args: Parameters<typeof write>) => {
    const output = outputs.getStore();
    if (output === undefined) return write(...args);
    output[name] += String(args[0]);
    return true;
  };
  stream.write = captured as typeof write;
}

/** The logger writes to the file descriptor of standard error. */
function captureLog(): void {
  const { writeSync } = fs;
  const captured = (...args: Parameters<typeof writeSync>) => {
    const output = outputs.getStore();
    const [descriptor, text] = args;
    if (output === undefined || descriptor !== 2) return writeSync(...args);
    output.stderr += String(text);
    return Buffer.byteLength(String(text));
  };
  fs.writeSync = captured as typeof writeSync;
}
