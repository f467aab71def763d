import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { type ChildRun, type ProcessCommand, startChild } from './child-run.ts';
import type { ReadyDetails } from './ipc.ts';
import type { Exit } from './server-process.ts';
import { within } from './timeout.ts';

export interface ProcessesOptions {
  readonly log: Pick<Logger, 'info' | 'warn' | 'error'>;
  /** Milliseconds that a process may take to report that it is ready; 60,000 unless given. */
  readonly readyWithinMs?: number;
  /** Milliseconds between SIGTERM and SIGKILL when it is stopped; 20,000 unless given. */
  readonly stopWithinMs?: number;
  /** How often a process that has never been ready is tried; 3 unless given. */
  readonly attempts?: number;
  /** Milliseconds before the first restart, doubled for each that follows; 250 unless given. */
  readonly firstDelayMs?: number;
  /** 10,000 unless given. A process that was ready for longer than this begins anew with the first delay. */
  readonly longestDelayMs?: number;
  /** How a life of a process is begun: a fork unless given. */
  readonly begin?: (command: ProcessCommand) => ChildRun;
  /** Stop all at once, not one after the other. */
  readonly stopTogether?: boolean;
  /** Hears that a process which had been ready ended by itself, and is about to be started again. */
  readonly onRestart?: (name: string) => void;
}

/** Processes of our own that are kept running. Disposing is `stop()`. */
export interface Processes extends AsyncDisposable {
  /**
   * Starts a process and resolves with what it reported when it was ready (parent.ts). From then on it is started
   * again, after a pause, whenever it ends.
   * @param attempts instead of what the options say; Infinity never gives up
   * @throws Error when it ended before it was ready, or took too long, as often as `attempts` says.
   * @throws HopelessStart at once when it told that trying again is in vain
   */
  start(command: ProcessCommand, attempts?: number): Promise<ReadyDetails>;
  /** What the processes that run say about something (parent.ts); those that do not answer in time are left out. */
  askAll(about: string, withinMs: number): Promise<unknown[]>;
  /** How many are ready now. */
  readonly ready: number;
  /** The pid of a process while it runs. */
  pidOf(name: string): number | undefined;
  /** Stops one after the other, the one that was started last first. Safe to call twice, and while one is starting. */
  stop(): Promise<void>;
}

/** A process ended before it was ready and told why, in the message; another attempt would end alike. */
export class HopelessStart extends Error {
  override readonly name = 'HopelessStart';
}

export function keepProcesses(options: ProcessesOptions): Processes {
  const all = {
    readyWithinMs: 60_000,
    stopWithinMs: 20_000,
    attempts: 3,
    firstDelayMs: 250,
    longestDelayMs: 10_000,
    begin: startChild,
    stopTogether: false,
    onRestart: () => {},
    ...options,
  };
  const kept: KeptProcess[] = [];
  let stopped: Promise<void> | undefined;
  const stopEach = async () => {
    if (all.stopTogether) await Promise.all(kept.map((one) => one.stop()));
    for (const one of kept.toReversed()) await one.stop();
  };
  const stop = () => {
    stopped ??= stopEach();
    return stopped;
  };
  return {
    async start(command, attempts = all.attempts) {
      if (stopped !== undefined)
        throw new Error(`${command.name} is not started any more: everything is being stopped`);
      const one = keep(command, { ...all, attempts });
      kept.push(one);
      return one.firstReady;
    },
    async askAll(about, withinMs) {
      const answers = await Promise.all(kept.map((one) => one.ask(about, withinMs)));
      return answers.filter((answer) => answer !== undefined);
    },
    get ready() {
      return kept.filter((one) => one.isReady()).length;
    },
    pidOf(name) {
      return kept.find((one) => one.name === name)?.pid();
    },
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

interface KeptProcess {
  readonly name: string;
  readonly firstReady: Promise<ReadyDetails>;
  pid(): number | undefined;
  isReady(): boolean;
  ask(about: string, withinMs: number): Promise<unknown>;
  stop(): Promise<void>;
}

/**
 * One process through its lives: starting → ready → ended → pause → starting …, until it is stopped. Only one that has
 * never been ready is given up: later on, what it needs may be down for hours and come back.
 */
function keep(command: ProcessCommand, options: Required<ProcessesOptions>): KeptProcess {
  const { log, firstDelayMs, longestDelayMs } = options;
  const stopping = new AbortController();
  const first = Promise.withResolvers<ReadyDetails>();
  // Whoever called start() handles it; nobody may, when stop() comes first.
  first.promise.catch(() => {});
  let run: ChildRun | undefined;
  let isReady = false;

  async function live(): Promise<void> {
    let delay = firstDelayMs;
    let everReady = false;
    for (let attempt = 1; !stopping.signal.aborted; attempt++) {
      run = options.begin(command);
      const details = await readyInTime(run, options.readyWithinMs);
      const late = details === undefined && run.exit === undefined;
      if (late) await run.end(options.stopWithinMs);
      const since = performance.now();
      if (details !== undefined) {
        if (everReady) log.info({ process: command.name, pid: run.pid }, 'ready again');
        everReady = true;
        isReady = true;
        first.resolve(details);
      }
      const exit = await run.exited;
      isReady = false;
      if (stopping.signal.aborted) return;
      const ended = late ? `was not ready within ${options.readyWithinMs} ms` : (run.failure ?? ending(exit));
      if (!everReady && run.failure !== undefined && Number.isFinite(options.attempts)) {
        first.reject(new HopelessStart(run.failure));
        return;
      }
      if (!everReady && attempt >= options.attempts) {
        const times = attempt === 1 ? '' : `, ${attempt} times`;
        first.reject(
          new Error(
            `${command.name} ${ended}${late ? '' : ' before it was ready'}${times}: see its output above`,
          ),
        );
        return;
      }
      if (details !== undefined) options.onRestart(command.name);
      if (details !== undefined && performance.now() - since > longestDelayMs) delay = firstDelayMs;
      log.error({ process: command.name, pid: run.pid, ...exit, delay }, `${ended}; starting it again`);
      await sleep(delay, undefined, { signal: stopping.signal }).catch(() => {});
      delay = Math.min(delay * 2, longestDelayMs);
    }
  }

  const living = live().catch((error: unknown) => first.reject(error));
  return {
    name: command.name,
    firstReady: first.promise,
    pid: () => (run?.exit === undefined ? run?.pid : undefined),
    isReady: () => isReady,
    ask: async (about, withinMs) => run?.ask(about, withinMs),
    async stop() {
      stopping.abort();
      first.reject(new Error(`${command.name} was stopped before it was ready`));
      if (run && run.exit === undefined && (await run.end(options.stopWithinMs)).signal === 'SIGKILL') {
        log.warn({ process: command.name }, `did not stop within ${options.stopWithinMs} ms and was killed`);
      }
      await living;
    },
  };
}

/** What it reported; undefined when it ended, or the time was over, before that. */
async function readyInTime(run: ChildRun, ms: number): Promise<ReadyDetails | undefined> {
  let details: ReadyDetails | undefined;
  const noted = run.ready.then((reported) => {
    details = reported;
  });
  await within(ms, noted);
  return details;
}

function ending(exit: Exit): string {
  return exit.signal === null ? `ended with code ${exit.code}` : `was ended by ${exit.signal}`;
}
