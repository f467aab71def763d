import { type ChildProcess, fork } from 'node:child_process';
import cluster from 'node:cluster';
import { withTimeout } from '../lib/timeout.ts';
import { type Asked, messageOf, type ReadyDetails } from './ipc.ts';
import type { Exit, Life } from './supervisor.ts';

/** One of our own programs, to be run by the Node that runs this. */
export interface ProcessCommand {
  /** Absolute path of its script. */
  readonly script: string;
  readonly args?: readonly string[];
  /** Arguments of Node's own, beside those that this process was started with. */
  readonly nodeArgs?: readonly string[];
  /** The whole environment. */
  readonly env: NodeJS.ProcessEnv;
}

const STDIO = ['ignore', 'inherit', 'inherit', 'ipc'] as const;

/**
 * Starts it with our own output as its output. It gets a session of its own, so that Ctrl-C on a terminal reaches us
 * alone. It has to end by itself when this process is gone: see `whenParentIsGone` in ipc.ts.
 */
export function startChild({ script, args = [], nodeArgs = [], env }: ProcessCommand): Life {
  const execArgv = [...process.execArgv, ...nodeArgs];
  return lifeOf(fork(script, args, { env, execArgv, stdio: [...STDIO], detached: true }));
}

/**
 * Starts a process that may listen on the same port as its siblings (node:cluster). Ctrl-C on a terminal reaches it as
 * well as us.
 */
export function startSharing({ script, args = [], env }: ProcessCommand): Life {
  cluster.setupPrimary({ exec: script, args: [...args], stdio: [...STDIO] });
  const worker = cluster.fork(env);
  // `lifeOf` handles the same error of the process; an error event that nobody listens to would end us.
  worker.on('error', () => {});
  return lifeOf(worker.process);
}

/** Whether this process was started by `startSharing`. */
export const isSharing = (): boolean => cluster.isWorker;

function lifeOf(child: ChildProcess): Life {
  let failure: string | undefined;
  let exit: Exit | undefined;
  let questions = 0;
  const exited = new Promise<Exit>((resolve) => {
    const ended = (code: number | null, signal: NodeJS.Signals | null) => {
      exit ??= { code, signal };
      resolve(exit);
    };
    child.once('exit', ended);
    // Without a pid it could not be started at all.
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
    async ask(about: Asked, ms) {
      if (exit !== undefined || !child.connected) return undefined;
      const id = ++questions;
      let answer: unknown;
      const { promise: answered, resolve } = Promise.withResolvers<void>();
      const onMessage = (sent: unknown) => {
        const message = messageOf(sent);
        if (message?.fleetbook !== 'answer' || message.id !== id) return;
        ({ answer } = message);
        resolve();
      };
      child.on('message', onMessage);
      child.send({ fleetbook: 'question', id, about }, () => {});
      await withTimeout(ms, answered);
      child.off('message', onMessage);
      return answer;
    },
    async end(ms) {
      if (exit === undefined) child.kill('SIGTERM');
      await withTimeout(ms, exited);
      if (exit === undefined) child.kill('SIGKILL');
      return exited;
    },
  };
}
