import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

/** Names the script of the bundle that the set-up of the system tests has built. */
export const TEST_PROGRAM = 'TEST_PROGRAM';

/** The program as sources, for tests about its modules. */
export const SOURCES = new URL('../../src/cli.ts', import.meta.url).pathname;

/** The program that tests start: the sources, or the bundle, which starts with half the CPU time. */
export const CLI = process.env[TEST_PROGRAM] ?? SOURCES;

/** A real process. Disposing sends SIGTERM and waits, then SIGKILL after ten seconds. */
export interface Program extends AsyncDisposable {
  readonly pid: number;
  readonly child: ChildProcess;
  /**
   * Returns the next line of its standard output, parsed. With a field name, skips lines without this field, such as
   * logs. @throws Error with its standard error if it ends first
   */
  answer(field?: string): Promise<Record<string, string | number>>;
  readonly exited: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>;
  /** The whole output so far, both streams. */
  output(): string;
}

export interface ProgramOptions {
  readonly env?: NodeJS.ProcessEnv;
  /** Command and arguments before Node's, e.g. setpriv's. */
  readonly through?: readonly string[];
  readonly cwd?: string;
}

export async function startProgram(
  script: string,
  args: readonly string[],
  options: ProgramOptions = {},
): Promise<Program> {
  const [command, ...rest] = [...(options.through ?? []), process.execPath, script, ...args];
  const child = spawn(command ?? process.execPath, rest, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE, ...(options.env ?? process.env) },
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
  });
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()));
  const exited = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve) => {
    child.once('exit', (code, signal) => resolve({ code, signal }));
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  await new Promise<void>((resolve, reject) => {
    child.once('spawn', resolve);
    child.once('error', reject);
  });
  return {
    pid: child.pid ?? 0,
    child,
    exited,
    output: () => output,
    async answer(field) {
      for (;;) {
        const { value, done } = await lines.next();
        if (done) throw new Error(`${script} ended without an answer:\n${output}`);
        const line = JSON.parse(value) as Record<string, string | number>;
        if (field === undefined || field in line) return line;
      }
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM');
      const hung = setTimeout(() => child.kill('SIGKILL'), 10_000);
      await exited;
      clearTimeout(hung);
    },
  };
}
