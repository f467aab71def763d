import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { withTimeout } from '../domain/clock.ts';
import type { ReadyDetails } from './ipc.ts';

/** The end of a process. One of the two fields is null. */
export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** One life of a supervised process or server, from its start to its end. */
export interface Life {
  readonly pid: number | undefined;
  /** Resolves with its report when it is ready, or with undefined if it ends before. It never rejects. */
  readonly ready: Promise<ReadyDetails | undefined>;
  readonly exited: Promise<Exit>;
  readonly exit: Exit | undefined;
  readonly failure: string | undefined;
  /** Requests its metrics; undefined without an answer within `ms`. */
  metrics(ms: number): Promise<unknown>;
  end(ms: number): Promise<Exit>;
}

export interface SupervisorOptions {
  readonly log: Pick<Logger, 'info' | 'warn' | 'error'>;
  /** Largest duration of a start in ms; 60,000 by default. */
  readonly readyWithinMs?: number;
  /** Milliseconds between SIGTERM and SIGKILL; 20,000 by default. */
  readonly stopWithinMs?: number;
  /** Milliseconds before the first restart, doubled for each further one; 250 by default. */
  readonly firstDelayMs?: number;
  /** 10,000 by default. A process that was ready for longer than this starts again with the first delay. */
  readonly longestDelayMs?: number;
  /** True stops all processes at the same time. */
  readonly stopTogether?: boolean;
  readonly onRestart?: (name: string) => void;
}

/** A reported failure before a process was ready. Another attempt would fail as well. */
export class HopelessStart extends Error {
  override readonly name = 'HopelessStart';
}

const ATTEMPTS = 3;

/** Keeps processes and servers running: it restarts each after its end, with growing pauses. */
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
   * Starts a process, keeps it running, and resolves with its report when it is ready.
   * @param name unique name for logs
   * @param begin starts one life
   * @param attempts number of attempts before it was ever ready; Infinity never gives up
   * @throws Error if all attempts ended before it was ready, or took too long
   * @throws HopelessStart at once if it reported a failure, unless `attempts` is Infinity
   */
  async start(name: string, begin: () => Life, attempts = ATTEMPTS): Promise<ReadyDetails> {
    if (this.#stopped !== undefined) throw new Error(`${name} is not started: the supervisor is stopping`);
    const one = supervise(name, begin, attempts, this.#options);
    this.#supervised.push(one);
    return one.firstReady;
  }

  async metrics(withinMs: number): Promise<unknown[]> {
    const answers = await Promise.all(this.#supervised.map((one) => one.life()?.metrics(withinMs)));
    return answers.filter((answer) => answer !== undefined);
  }

  get ready(): number {
    return this.#supervised.filter((one) => one.isReady()).length;
  }

  pidOf(name: string): number | undefined {
    return this.#supervised.find((one) => one.name === name)?.life()?.pid;
  }

  /** Stops all in reverse order. It may be called twice, and during a start. */
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
  life(): Life | undefined;
  stop(): Promise<void>;
}

/** Runs lives until it is stopped. It gives up only before the first one is ready: later a dependency may return. */
function supervise(
  name: string,
  begin: () => Life,
  attempts: number,
  options: Required<SupervisorOptions>,
): Supervised {
  const { log, readyWithinMs, stopWithinMs, firstDelayMs, longestDelayMs } = options;
  const stopping = new AbortController();
  const first = Promise.withResolvers<ReadyDetails>();
  // The caller of start() handles a rejection. Without one, after an early stop(), it is ignored.
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
      // A report during the end does not count.
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
      log.error(
        { process: name, pid: life.pid, ...exit, delay },
        `${name} ${why}; the supervisor restarts it`,
      );
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
