import { type ChildProcess, fork } from 'node:child_process';
import { isAnswerMessage, isFailureMessage, isReadyMessage, type ReadyDetails } from './ipc.ts';
import type { Exit } from './server-process.ts';
import { within } from './timeout.ts';

/** One of our own programs, to be run by the Node that runs this. */
export interface ProcessCommand {
  /** In logs, and unique among those that run together, e.g. `serve`. */
  readonly name: string;
  /** Absolute path of its script. */
  readonly script: string;
  readonly args?: readonly string[];
  /** Arguments of Node's own, beside those that this process was started with. */
  readonly nodeArgs?: readonly string[];
  /** The whole environment; this process's own unless given. */
  readonly env?: NodeJS.ProcessEnv;
}

/** One life of a process. */
export interface ChildRun {
  readonly pid: number | undefined;
  /** Resolves with what it reports when it is ready, or with undefined when it ends before. */
  readonly ready: Promise<ReadyDetails | undefined>;
  readonly exited: Promise<Exit>;
  /** Undefined while it runs. */
  readonly exit: Exit | undefined;
  /** Why it gave up, in its own words, where starting it again is in vain (parent.ts). */
  readonly failure: string | undefined;
  /** What it says about something (parent.ts); undefined when it does not answer within `ms`. */
  ask(about: string, ms: number): Promise<unknown>;
  /** SIGTERM, and SIGKILL when it has not ended after `ms`. */
  end(ms: number): Promise<Exit>;
}

/**
 * Starts it with our own output as its output. It gets a session of its own, so that Ctrl-C on a terminal reaches us
 * alone; that it ends when we are gone is its own business (parent.ts).
 */
export function startChild(command: ProcessCommand): ChildRun {
  const child = fork(command.script, command.args ?? [], {
    env: command.env ?? process.env,
    execArgv: [...process.execArgv, ...(command.nodeArgs ?? [])],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    detached: true,
  });
  return runOf(child);
}

/** The life of a child that has just been started and has a channel to us. */
export function runOf(child: ChildProcess): ChildRun {
  let failure: string | undefined;
  let exit: Exit | undefined;
  let questions = 0;
  const exited = new Promise<Exit>((resolve) => {
    const ended = (code: number | null, signal: NodeJS.Signals | null) => {
      exit ??= { code, signal };
      resolve(exit);
    };
    child.once('exit', ended);
    // It could not be started at all; why is told by whoever waits for it.
    child.on('error', () => child.pid === undefined && ended(127, null));
  });
  const ready = new Promise<ReadyDetails | undefined>((resolve) => {
    child.on('message', (message) => {
      if (isReadyMessage(message)) resolve(message.details);
      else if (isFailureMessage(message)) failure = message.why;
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
    async ask(about, ms) {
      if (exit !== undefined || !child.connected) return undefined;
      const id = ++questions;
      const answered = Promise.withResolvers<unknown>();
      const onMessage = (message: unknown) => {
        if (isAnswerMessage(message) && message.id === id) answered.resolve(message.answer);
      };
      child.on('message', onMessage);
      let answer: unknown;
      const noted = answered.promise.then((found) => {
        answer = found;
      });
      child.send({ fleetbook: 'question', id, about }, () => {});
      await within(ms, noted);
      child.off('message', onMessage);
      return answer;
    },
    async end(ms) {
      if (exit === undefined) child.kill('SIGTERM');
      await within(ms, exited);
      if (exit === undefined) child.kill('SIGKILL');
      return exited;
    },
  };
}
