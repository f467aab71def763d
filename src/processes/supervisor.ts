import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { withTimeout } from '../lib/timeout.ts';
import type { Asked, ReadyDetails } from './ipc.ts';

/** How a process ended: one of the two is null. */
export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** One life of what is supervised: from a start to the end that follows. */
export interface Life {
  readonly pid: number | undefined;
  /** Resolves with what it reports when it is ready, or with undefined when it ends before. Never rejects. */
  readonly ready: Promise<ReadyDetails | undefined>;
  /** Never rejects. */
  readonly exited: Promise<Exit>;
  /** Undefined while it runs. */
  readonly exit: Exit | undefined;
  /** Why it ended before it was ready, in its own words, where it told. */
  readonly failure: string | undefined;
  /** What it answers; undefined when it does not within `ms`. */
  ask(about: Asked, ms: number): Promise<unknown>;
  /** Asks it to end, and kills it when it has not after `ms`. */
  end(ms: number): Promise<Exit>;
}

export interface SupervisorOptions {
  readonly log: Pick<Logger, 'info' | 'warn' | 'error'>;
  /** Milliseconds that a start may take; 60,000 unless given. */
  readonly readyWithinMs?: number;
  /** Milliseconds between SIGTERM and SIGKILL when it is stopped; 20,000 unless given. */
  readonly stopWithinMs?: number;
  /** Milliseconds before the first restart, doubled for each that follows; 250 unless given. */
  readonly firstDelayMs?: number;
  /** 10,000 unless given. What was ready for longer than this begins anew with the first delay. */
  readonly longestDelayMs?: number;
  /** Stop all at once, not one after the other. */
  readonly stopTogether?: boolean;
  /** Called when something that had been ready ended by itself, and is about to be started again. */
  readonly onRestart?: (name: string) => void;
}

/** It ended before it was ready and told why, in the message; another attempt would end alike. */
export class HopelessStart extends Error {
  override readonly name = 'HopelessStart';
}

const ATTEMPTS = 3;

/** Keeps processes and servers running: starts them again, after a pause that grows, whenever they end. */
export class Supervisor implements AsyncDisposable {
  readonly #options: Required<SupervisorOptions>;
  readonly #supervised: Supervised[] = [];
  #stopped: Promise<void> | undefined;

  constructor(options: SupervisorOptions) {
    this.#options = {
      readyWithinMs: 60_000,
      stopWithinMs: 20_000,
      firstDelayMs: 250,
      longestDelayMs: 10_000,
      stopTogether: false,
      onRestart: () => {},
      ...options,
    };
  }

  /**
   * Starts something and resolves with what it reported when it was ready. From then on it is kept running.
   * @param name in logs, and unique among what this supervisor keeps running
   * @param begin begins one life of it
   * @param attempts how often it is tried before it was ever ready; Infinity never gives up
   * @throws Error when it ended before it was ready, or took too long, as often as `attempts` says
   * @throws HopelessStart at once when it told why, unless it is never given up
   */
  async start(name: string, begin: () => Life, attempts = ATTEMPTS): Promise<ReadyDetails> {
    if (this.#stopped !== undefined)
      throw new Error(`${name} is not started any more: everything is being stopped`);
    const one = supervise(name, begin, attempts, this.#options);
    this.#supervised.push(one);
    return one.firstReady;
  }

  /** What those that run answer; those that do not answer in time are left out. */
  async askAll(about: Asked, withinMs: number): Promise<unknown[]> {
    const answers = await Promise.all(this.#supervised.map((one) => one.life()?.ask(about, withinMs)));
    return answers.filter((answer) => answer !== undefined);
  }

  /** How many are ready now. */
  get ready(): number {
    return this.#supervised.filter((one) => one.isReady()).length;
  }

  /** The pid of one while it runs. */
  pidOf(name: string): number | undefined {
    return this.#supervised.find((one) => one.name === name)?.life()?.pid;
  }

  /** Stops the one that was started last first. Safe to call twice, and while one is starting. */
  stop(): Promise<void> {
    this.#stopped ??= this.#stopAll();
    return this.#stopped;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  async #stopAll(): Promise<void> {
    if (this.#options.stopTogether) await Promise.all(this.#supervised.map((one) => one.stop()));
    else for (const one of this.#supervised.toReversed()) await one.stop();
  }
}

interface Supervised {
  readonly name: string;
  readonly firstReady: Promise<ReadyDetails>;
  isReady(): boolean;
  /** Undefined while it does not run. */
  life(): Life | undefined;
  stop(): Promise<void>;
}

/**
 * Through its lives: starting → ready → ended → pause → starting …, until it is stopped. Only what has never been ready
 * is given up: later on, what it needs may be down for hours and come back.
 */
function supervise(
  name: string,
  begin: () => Life,
  attempts: number,
  options: Required<SupervisorOptions>,
): Supervised {
  const { log, readyWithinMs, stopWithinMs, firstDelayMs, longestDelayMs } = options;
  const stopping = new AbortController();
  const first = Promise.withResolvers<ReadyDetails>();
  // The caller of start() handles a rejection; there may be none when stop() comes first.
  first.promise.catch(() => {});
  let life: Life | undefined;
  let isReady = false;

  async function live(): Promise<void> {
    let delay = firstDelayMs;
    let everReady = false;
    for (let attempt = 1; !stopping.signal.aborted; attempt++) {
      life = begin();
      const isInTime = await withTimeout(readyWithinMs, life.ready);
      if (!isInTime) await life.end(stopWithinMs);
      // Undefined also where it reported only while it was being ended.
      const details = isInTime ? await life.ready : undefined;
      const since = performance.now();
      if (details !== undefined) {
        if (everReady) log.info({ process: name, pid: life.pid }, `${name} runs again`);
        everReady = true;
        isReady = true;
        first.resolve(details);
      }
      const exit = await life.exited;
      isReady = false;
      if (stopping.signal.aborted) return;
      const why = isInTime ? (life.failure ?? ending(exit)) : `was not ready within ${readyWithinMs} ms`;
      if (!everReady && life.failure !== undefined && Number.isFinite(attempts))
        throw new HopelessStart(life.failure);
      if (!everReady && attempt >= attempts) {
        const early = isInTime ? ' before it was ready' : '';
        const times = attempt === 1 ? '' : `, ${attempt} times`;
        throw new Error(`${name} ${why}${early}${times}: see its output above`);
      }
      if (details !== undefined) {
        options.onRestart(name);
        if (performance.now() - since > longestDelayMs) delay = firstDelayMs;
      }
      log.error({ process: name, pid: life.pid, ...exit, delay }, `${name} ${why}; it is started again`);
      await sleep(delay, undefined, { signal: stopping.signal }).catch(() => {});
      delay = Math.min(delay * 2, longestDelayMs);
    }
  }

  const living = live().catch((error: unknown) => first.reject(error));
  const running = () => (life?.exit === undefined ? life : undefined);
  return {
    name,
    firstReady: first.promise,
    isReady: () => isReady,
    life: running,
    async stop() {
      stopping.abort();
      first.reject(new Error(`${name} was stopped before it was ready`));
      if ((await running()?.end(stopWithinMs))?.signal === 'SIGKILL')
        log.warn({ process: name }, `${name} did not stop within ${stopWithinMs} ms and was killed`);
      await living;
    },
  };
}

function ending(exit: Exit): string {
  return exit.signal === null ? `ended with code ${exit.code}` : `was ended by ${exit.signal}`;
}
