import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { realpathSync } from 'node:fs';
import { basename } from 'node:path';
import { withTimeout } from '../domain/clock.ts';
import { findProgram } from './find-program.ts';
import type { Exit, Life } from './supervisor.ts';

export interface ServerProcess {
  readonly pid: number;
  /** Resolves after the end. It never rejects. */
  readonly exited: Promise<Exit>;
  readonly exit: Exit | undefined;
  /** Returns the last lines of its output, for error messages. After its end it waits for buffered output. */
  lastLines(): Promise<string>;
  signal(signal: NodeJS.Signals): void;
  /** Sends the signals in order, with a wait of up to `ms` after each, until the process has ended. */
  end(steps: readonly { readonly signal: NodeJS.Signals; readonly ms: number }[]): Promise<Exit>;
}

export interface ServerCommand {
  readonly command: string;
  readonly args: readonly string[];
  /** Written to its standard input. Secrets belong here, because all users can read arguments. */
  readonly input?: string;
  readonly cwd?: string;
  /** The signal that Linux sends after this process has died. */
  readonly whenParentDies: 'SIGINT' | 'SIGTERM';
  readonly privileges?: readonly string[];
}

const OUTPUT_LENGTH = 4_000;

/** Starts a detached server, which Ctrl-C does not reach. @throws Error if the program cannot be started */
export async function startServerProcess(wanted: ServerCommand): Promise<ServerProcess> {
  const [command, ...args] = withSetpriv(wanted);
  const child = spawn(command, args, { detached: true, cwd: wanted.cwd });
  let output = '';
  const collect = (chunk: Buffer) => {
    output = (output + chunk.toString()).slice(-OUTPUT_LENGTH);
  };
  child.stdout.on('data', collect);
  child.stderr.on('data', collect);
  let exit: Exit | undefined;
  // A grandchild may keep the pipes open after the server's end, so the end is 'exit' and not 'close'.
  const outputEnded = new Promise<void>((resolve) => child.once('close', () => resolve()));
  const exited = new Promise<Exit>((resolve) => {
    child.once('exit', (code, signal) => {
      exit = { code, signal };
      resolve(exit);
    });
  });
  await once(child, 'spawn').catch((error: Error) => {
    throw new Error(`cannot start ${wanted.command}: ${error.message}`, { cause: error });
  });
  // A server may die before it reads its input. Its exit explains more than EPIPE.
  child.stdin.on('error', () => {});
  child.stdin.end(wanted.input ?? '');
  const { pid } = child;
  if (pid === undefined) throw new Error(`${wanted.command} has no process id`);
  return {
    pid,
    exited,
    get exit() {
      return exit;
    },
    async lastLines() {
      if (exit !== undefined) await withTimeout(500, outputEnded);
      return output.trim();
    },
    signal(signal) {
      if (exit === undefined) child.kill(signal);
    },
    async end(steps) {
      for (const { signal, ms } of steps) {
        if (exit !== undefined) return exit;
        child.kill(signal);
        await withTimeout(ms, exited);
      }
      return exited;
    },
  };
}

interface StartedServer extends AsyncDisposable {
  readonly pid: number;
  readonly exited: Promise<Exit>;
}

export function serverLife(start: () => Promise<StartedServer>): Life {
  let pid: number | undefined;
  let exit: Exit | undefined;
  let failure: string | undefined;
  const starting = start();
  const run = async (): Promise<Exit> => {
    try {
      await using server = await starting;
      ({ pid } = server);
      exit = await server.exited;
    } catch (error) {
      failure = error instanceof Error ? error.message : String(error);
      exit ??= { code: 1, signal: null };
    }
    return exit;
  };
  const exited = run();
  return {
    get pid() {
      return pid;
    },
    ready: starting.then(
      () => ({}),
      () => undefined,
    ),
    exited,
    get exit() {
      return exit;
    },
    get failure() {
      return failure;
    },
    metrics: async () => undefined,
    async end() {
      const server = await starting.catch(() => undefined);
      await server?.[Symbol.asyncDispose]();
      return exited;
    },
  };
}

/** Returns setpriv of util-linux, or undefined. Busybox's setpriv lacks parent death signals and securebits. */
export function findSetpriv(): string | undefined {
  const found = process.platform === 'linux' ? findProgram('setpriv') : undefined;
  return found === undefined || basename(realpathSync(found)) === 'busybox' ? undefined : found;
}

/** Adds setpriv, which replaces itself by the program: the child's pid is the server's. */
function withSetpriv(wanted: ServerCommand): [string, ...string[]] {
  const setpriv = findSetpriv();
  if (setpriv === undefined) return [wanted.command, ...wanted.args];
  return [
    setpriv,
    ...(wanted.privileges ?? []),
    `--pdeathsig=${wanted.whenParentDies}`,
    '--',
    wanted.command,
    ...wanted.args,
  ];
}
