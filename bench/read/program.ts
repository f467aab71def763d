/** Starts the measured servers, each in a separate process on the servers' core. */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { findProgram } from '../../src/processes/find-program.ts';
import { messageOf, type ReadyDetails } from '../../src/processes/ipc.ts';
import type { WatchedTurns } from './watch-turns.ts';

export const ROOT = join(import.meta.dirname, '../..');

export const CORES = availableParallelism();

const taskset = findProgram('taskset');
/** Undefined without two cores or taskset(1); then the result states that nothing was pinned. */
export const PINNED = taskset !== undefined && CORES >= 2;

/** The command that runs `command` on the servers' or the load's core, if cores can be chosen. */
export function pinned(
  core: 'server' | 'load' | 'any',
  command: string,
  args: readonly string[],
): [string, string[]] {
  if (!PINNED || core === 'any' || taskset === undefined) return [command, [...args]];
  return [taskset, ['--cpu-list', core === 'server' ? '0' : '1', command, ...args]];
}

export interface Program extends AsyncDisposable {
  readonly pid: number;
  readonly details: ReadyDetails;
  /** For messages of benchmarks. */
  readonly child: ChildProcess;
}

export interface ProgramOptions {
  /** Arguments of Node: its flags, the script, and the script's arguments. */
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** File of its standard error, as with a service manager. */
  readonly logFile: string;
  readonly core?: 'server' | 'load' | 'any';
}

/** Arguments of Node for a program whose turns are to be watched. */
export const WATCHED = ['--import', join(ROOT, 'bench/read/watch-turns.ts')] as const;

/** Returns the long turns of a program's event loop during the work. It needs `WATCHED`. */
export async function watchTurns({ child }: Program, work: () => Promise<unknown>): Promise<WatchedTurns> {
  const { promise, resolve } = Promise.withResolvers<WatchedTurns>();
  const listen = (message: unknown) => {
    const { watched } = message as { watched?: WatchedTurns };
    if (watched) resolve(watched);
  };
  child.on('message', listen);
  child.send('watch');
  await work();
  child.send('watched');
  const found = await promise;
  child.off('message', listen);
  return found;
}

const START_MS = 30_000;
const STOP_MS = 15_000;

/** @throws Error if it ends before it reports that it is ready, or is not ready in time; its log has the reason */
export async function startProgram(options: ProgramOptions): Promise<Program> {
  const child = spawnProgram(options);
  const ready = Promise.withResolvers<ReadyDetails>();
  child.on('message', (message) => {
    const sent = messageOf(message);
    if (sent?.fleetbook === 'ready') ready.resolve(sent.details);
  });
  child.once('error', ready.reject);
  child.once('exit', (code) =>
    ready.reject(new Error(`${options.args.join(' ')} ended with code ${code}; see ${options.logFile}`)),
  );
  const timer = setTimeout(
    () => ready.reject(new Error(`${options.args.join(' ')} was not ready in ${START_MS} ms`)),
    START_MS,
  );
  try {
    const details = await ready.promise;
    return { pid: child.pid ?? 0, details, child, [Symbol.asyncDispose]: () => stop(child) };
  } catch (error) {
    await stop(child);
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

/** Only starts it: for measuring the start itself. */
export function spawnProgram({ args, env, logFile, core = 'server' }: ProgramOptions): ChildProcess {
  const log = openSync(logFile, 'a');
  const [command, rest] = pinned(core, process.execPath, args);
  try {
    return spawn(command, rest, {
      cwd: ROOT,
      env: { PATH: process.env.PATH, NODE_ENV: 'production', ...env },
      stdio: ['ignore', 'ignore', log, 'ipc'],
    });
  } finally {
    closeSync(log);
  }
}

export async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
  await ended;
  clearTimeout(timer);
}
