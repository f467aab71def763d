import { type ChildProcess, fork } from 'node:child_process';
import cluster from 'node:cluster';
import { on } from 'node:events';
import { withTimeout } from '../domain/clock.ts';
import { messageOf, type ReadyDetails } from './ipc.ts';
import type { Exit, Life } from './supervisor.ts';

/** A worker's arguments. A sync's objects are short-lived: a small young generation is enough. See docs/performance.md. */
export const WORKER_NODE_ARGS: readonly string[] = ['--max-semi-space-size=4'];

export interface ProcessCommand {
  readonly script: string;
  readonly args?: readonly string[];
  readonly nodeArgs?: readonly string[];
  readonly env: NodeJS.ProcessEnv;
}

const STDIO = ['ignore', 'inherit', 'inherit', 'ipc'] as const;

/** Starts a detached program, which Ctrl-C does not reach. It ends itself after its parent: see `onParentExit`. */
export function startChild({ script, args = [], nodeArgs = [], env }: ProcessCommand): Life {
  const execArgv = [...process.execArgv, ...nodeArgs];
  return lifeOf(fork(script, args, { env, execArgv, stdio: [...STDIO], detached: true }));
}

/** Starts a process that shares its port with its siblings (node:cluster). Ctrl-C reaches it as well. */
export function startSharing({ script, args = [], env }: ProcessCommand): Life {
  cluster.setupPrimary({ exec: script, args: [...args], stdio: [...STDIO] });
  const worker = cluster.fork(env);
  // `lifeOf` handles the error. Without a listener here it would end this process.
  worker.on('error', () => {});
  return lifeOf(worker.process);
}

export const isSharing = (): boolean => cluster.isWorker;

function lifeOf(child: ChildProcess): Life {
  let failure: string | undefined;
  let exit: Exit | undefined;
  let requests = 0;
  const exited = new Promise<Exit>((resolve) => {
    const ended = (code: number | null, signal: NodeJS.Signals | null) => {
      exit ??= { code, signal };
      resolve(exit);
    };
    child.once('exit', ended);
    // A child without a pid has failed to start.
    child.on('error', () => child.pid === undefined && ended(127, null));
  });
  const ready = new Promise<ReadyDetails | undefined>((resolve) => {
    child.on('message', (sent) => {
      const message = messageOf(sent);
      if (message?.fleetbook === 'ready') resolve(message.details);
      else if (message?.fleetbook === 'failure') failure = message.why;
    });
    void exited.then(() => resolve(undefined));
  });
  return {
    pid: child.pid,
    ready,
    exited,
    get exit() {
      return exit;
    },
    get failure() {
      return failure;
    },
    async metrics(ms) {
      if (exit !== undefined || !child.connected) return undefined;
      const id = ++requests;
      child.send({ fleetbook: 'request', id }, () => {});
      try {
        for await (const [sent] of on(child, 'message', { signal: AbortSignal.timeout(ms) })) {
          const message = messageOf(sent);
          if (message?.fleetbook === 'answer' && message.id === id) return message.answer;
        }
      } catch {}
      return undefined;
    },
    async end(ms) {
      if (exit === undefined) child.kill('SIGTERM');
      await withTimeout(ms, exited);
      if (exit === undefined) child.kill('SIGKILL');
      return exited;
    },
  };
}
