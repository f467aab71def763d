import { ReplyError } from 'ioredis';
import type { Logger } from 'pino';
import type { RedisClient } from '../../redis/redis.ts';
import type { CacheKeys, DocumentName } from '../document/keys.ts';
import { setIfNewer } from '../publish/fence.ts';

/** Milliseconds until a reply is late. */
const DEADLINE_MS = 50;
/** How many times longer the reply to a read counts, while Postgres is read too. */
const LATE_READS = 20;
/** Concurrent write-backs. More are skipped: a value takes longer to encode than to read from Postgres. */
const WRITE_BACKS_AT_MOST = 64;
/** Seconds until a write-back expires, unless the publisher makes it permanent. */
const WRITE_BACK_SECONDS = 60;

export class CacheCommands {
  /** Set while the cache holds only a lineage that the database has left: every read is a miss. */
  isOff = false;
  readonly #redis: RedisClient;
  readonly #logger: Logger;
  readonly #breaker: Breaker;
  readonly #deadline: LoopDeadline;
  readonly #lateDeadline: LoopDeadline;
  #writingBack = 0;

  constructor(redis: RedisClient, logger: Logger, now: () => number, deadlineMs = DEADLINE_MS) {
    this.#redis = redis;
    this.#logger = logger;
    this.#deadline = new LoopDeadline(deadlineMs);
    this.#lateDeadline = new LoopDeadline(LATE_READS * deadlineMs);
    this.#breaker = new Breaker({ failuresToOpen: 3, retryAfterMs: 500, now });
  }

  get isReady(): boolean {
    return !this.isOff && this.#redis.status === 'ready';
  }

  /** Runs one command under the circuit breaker. Undefined if the cache does not answer. */
  run<T>(command: (redis: RedisClient) => Promise<T>): Promise<T | undefined> {
    return this.isReady && this.#breaker.allows() ? this.runAlways(command) : Promise.resolve(undefined);
  }

  /** Runs one read for `hedge`, in any state of the circuit breaker. Its reply counts for up to a second. */
  read<T>(command: (redis: RedisClient) => Promise<T>): Promise<T | undefined> {
    return this.isReady ? this.runAlways(command, this.#lateDeadline) : Promise.resolve(undefined);
  }

  /** Runs one command in any state of the circuit breaker, and so detects the return of the cache. */
  async runAlways<T>(
    command: (redis: RedisClient) => Promise<T>,
    deadline = this.#deadline,
  ): Promise<T | undefined> {
    try {
      const reply = command(this.#redis);
      const inTime = this.#deadline.within(reply);
      inTime.then(
        () => this.#breaker.succeeded(),
        // A server that rejects a command, e.g. a write when its memory is full, is not down.
        (error) => (error instanceof ReplyError ? this.#breaker.succeeded() : this.#breaker.failed()),
      );
      return await (deadline === this.#deadline ? inTime : deadline.within(reply));
    } catch (error) {
      this.#logger.debug({ err: error }, 'the cache did not answer');
      return undefined;
    }
  }

  /**
   * Reads from Postgres too once the cache is late or has no value, and at once after repeated late replies. The first answer
   * wins. A failure is that of Postgres.
   * @param fromCache null: the cache has no value; undefined: it does not answer
   */
  async hedge<T>(fromCache: Promise<T | null | undefined>, fromPostgres: () => Promise<T>): Promise<T> {
    const inTime = this.#breaker.isClosed ? this.#deadline.within(fromCache) : undefined;
    const found = await inTime?.catch(() => undefined);
    if (found != null) return found;
    const reading = fromPostgres();
    const late = fromCache.then((answer) => answer ?? reading);
    return Promise.any([reading, late]).catch(() => reading);
  }

  /**
   * Writes a document of Postgres to the cache, fenced and with an expiry. Failures are ignored. Only workers write tokens,
   * because a reader's user of Redis could otherwise create one. Memory has a token that the cache lacks.
   */
  writeBack(keys: CacheKeys, name: DocumentName, version: number, value: () => Promise<Buffer>): void {
    if (name.kind === 'token') return;
    if (this.#writingBack >= WRITE_BACKS_AT_MOST) return;
    this.#writingBack += 1;
    void this.run(async (redis) =>
      setIfNewer(redis, keys, name, version, await value(), WRITE_BACK_SECONDS),
    ).finally(() => {
      this.#writingBack -= 1;
    });
  }
}

/** A circuit breaker: refuses calls after repeated failures, and lets one through after each pause. */
export class Breaker {
  readonly #options: { failuresToOpen: number; retryAfterMs: number; now: () => number };
  #failures = 0;
  #openUntil = 0;

  constructor(options: { failuresToOpen: number; retryAfterMs: number; now: () => number }) {
    this.#options = options;
  }

  /** True while no call is refused. */
  get isClosed(): boolean {
    return this.#failures < this.#options.failuresToOpen;
  }

  /** Returns false for a call that is refused. */
  allows(): boolean {
    if (this.isClosed) return true;
    if (this.#options.now() < this.#openUntil) return false;
    this.#pause();
    return true;
  }

  succeeded(): void {
    this.#failures = 0;
  }

  failed(): void {
    this.#failures += 1;
    if (!this.isClosed) this.#pause();
  }

  #pause(): void {
    this.#openUntil = this.#options.now() + this.#options.retryAfterMs;
  }
}

/** The deadline is this many ticks. */
const TICKS = 5;

interface Waiting {
  readonly until: number;
  readonly expire: () => void;
}

/**
 * Rejects promises that take long. Time is counted in ticks of the event loop. While this process stalls no time passes, because
 * the server may have answered already.
 */
export class LoopDeadline {
  readonly #tickMs: number;
  /** The oldest first. */
  readonly #waiting = new Set<Waiting>();
  #tick = 0;
  #timer: NodeJS.Timeout | undefined;

  /** @param ms of an event loop that does not stall; up to a fifth more */
  constructor(ms: number) {
    this.#tickMs = ms / TICKS;
  }

  /** @throws Error after the deadline, and the promise's rejection */
  within<T>(reply: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      // The next tick may come at once.
      const until = this.#tick + TICKS + 1;
      const waiting: Waiting = { until, expire: () => reject(new Error('no answer in time')) };
      this.#waiting.add(waiting);
      this.#timer ??= setInterval(() => this.#onTick(), this.#tickMs);
      reply.then(resolve, reject).finally(() => this.#waiting.delete(waiting));
    });
  }

  #onTick(): void {
    this.#tick += 1;
    for (const waiting of this.#waiting) {
      if (waiting.until > this.#tick) break;
      this.#waiting.delete(waiting);
      waiting.expire();
    }
    if (this.#waiting.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
