import { type ChildProcess, spawn } from 'node:child_process';
import { realpathSync } from 'node:fs';
import { basename } from 'node:path';
import { withTimeout } from '../lib/timeout.ts';
import { onPath } from './on-path.ts';
import type { Exit, Life } from './supervisor.ts';

/** A server of somebody else's making (Postgres, Redis) that runs as our child. */
export interface ServerProcess {
  readonly pid: number;
  /** Resolves when it has ended, for whatever reason; never rejects. */
  readonly exited: Promise<Exit>;
  /** Undefined while it runs. */
  readonly exit: Exit | undefined;
  /** The last lines it wrote, for an error's message; after its end those that are still on their way, too. */
  lastLines(): Promise<string>;
  signal(signal: NodeJS.Signals): void;
  /** Sends the signals one after the other, waiting up to `ms` after each, until it has ended. */
  end(steps: readonly { readonly signal: NodeJS.Signals; readonly ms: number }[]): Promise<Exit>;
}

export interface ServerCommand {
  readonly command: string;
  readonly args: readonly string[];
  /** Written to its standard input, which is then closed: the place for secrets, since everybody can read arguments. */
  readonly input?: string;
  readonly env?: NodeJS.ProcessEnv;
  readonly cwd?: string;
  /** What Linux sends it when this process dies without having stopped it. */
  readonly whenParentDies: 'SIGINT' | 'SIGTERM';
  /** Further options of setpriv(1), see unprivileged.ts. */
  readonly privileges?: readonly string[];
}

const KEPT = 4_000;

/**
 * Starts it in a session of its own, so that Ctrl-C on a terminal reaches us alone and we stop things in order.
 * @throws Error when the program cannot be started.
 */
export async function startServerProcess(wanted: ServerCommand): Promise<ServerProcess> {
  const [command, ...args] = withSetpriv(wanted);
  const child = spawn(command, args, {
    detached: true,
    stdio: ['pipe', 'pipe', 'pipe'],
    env: wanted.env ?? process.env,
    ...(wanted.cwd === undefined ? {} : { cwd: wanted.cwd }),
  });
  let kept = '';
  const keep = (chunk: Buffer) => {
    kept = (kept + chunk.toString()).slice(-KEPT);
  };
  child.stdout.on('data', keep);
  child.stderr.on('data', keep);
  let exit: Exit | undefined;
  // A grandchild may keep the pipes open long after the server itself is gone, so its end is 'exit' and not 'close'.
  const outputEnded = new Promise<void>((resolve) => child.once('close', () => resolve()));
  const exited = new Promise<Exit>((resolve) => {
    child.once('exit', (code, signal) => {
      exit = { code, signal };
      resolve(exit);
    });
  });
  await started(child, wanted.command);
  // It may die before it has read its input; how it ended says more than EPIPE.
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
      return kept.trim();
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

function started(child: ChildProcess, command: string): Promise<void> {
  return new Promise((resolve, reject) => {
    child.once('spawn', resolve);
    child.once('error', (error) =>
      reject(new Error(`cannot start ${command}: ${error.message}`, { cause: error })),
    );
  });
}

interface StartedServer extends AsyncDisposable {
  readonly pid: number;
  readonly exited: Promise<Exit>;
}

/** One life of a server, for a supervisor. A start that fails says why, and disposing stops the server. */
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
    ask: async () => undefined,
    async end() {
      const server = await starting.catch(() => undefined);
      await server?.[Symbol.asyncDispose]();
      return exited;
    },
  };
}

/** util-linux's setpriv, where there is one; busybox's knows neither parent death signals nor securebits. */
export function findSetpriv(): string | undefined {
  const found = process.platform === 'linux' ? onPath('setpriv') : undefined;
  return found === undefined || basename(realpathSync(found)) === 'busybox' ? undefined : found;
}

/** setpriv replaces itself by the program, so the child's pid is the server's. */
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
