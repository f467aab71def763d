import { ReplyError } from 'ioredis';
import type { Logger } from 'pino';
import type { RedisClient } from '../../redis/redis.ts';
import type { MaybePromise } from '../document/answer.ts';
import type { CacheKeys, DocumentName } from '../document/keys.ts';
import { setIfNewer } from '../publish/fence.ts';

/** Milliseconds until a reply is late. */
const DEADLINE_MS = 50;
/** Concurrent write-backs. More are skipped: a value takes longer to encode than to read from Postgres. */
const WRITE_BACKS_AT_MOST = 64;
/** Seconds until a write-back expires, unless the publisher makes it permanent. */
const WRITE_BACK_SECONDS = 60;

/** A reply that is not there in time. It still counts: it settles with the connection at the latest. */
export class Late<T> {
  /** Never rejects; undefined if the cache does not answer. */
  readonly reply: Promise<T | undefined>;

  constructor(reply: Promise<T | undefined>) {
    this.reply = reply;
  }
}

/** Undefined: the cache does not answer. */
export type Reply<T> = T | undefined | Late<T>;

/** Documents in one command. With more, the first waits long for the last. */
const AT_ONCE = 16;

export type OnReply<T> = (reply: Reply<T>) => void;

interface Batch {
  readonly keys: string[];
  readonly waiting: OnReply<Buffer | null>[];
}

const AWAY = Promise.resolve(undefined);

/**
 * The commands of a reader. They never fail, and each has one deadline. After a few late replies a circuit breaker refuses commands,
 * and reads of documents do not wait for the cache before they read Postgres.
 */
export class CacheCommands {
  /** Set while the cache holds only a lineage that the database has left: every read is a miss. */
  isOff = false;
  readonly #redis: RedisClient;
  readonly #logger: Logger;
  readonly #breaker: Breaker;
  readonly #deadline: LoopDeadline;
  #open: Batch | undefined;
  /** Commands of batches without a reply in time. */
  #underway = 0;
  #writingBack = 0;

  constructor(redis: RedisClient, logger: Logger, now: () => number, deadlineMs = DEADLINE_MS) {
    this.#redis = redis;
    this.#logger = logger;
    this.#deadline = new LoopDeadline(deadlineMs);
    this.#breaker = new Breaker({ failuresToOpen: 3, retryAfterMs: 500, now });
  }

  get isReady(): boolean {
    return !this.isOff && this.#redis.status === 'ready';
  }

  /** Runs one command under the circuit breaker. Undefined if the cache does not answer. */
  run<T>(command: (redis: RedisClient) => Promise<T>): Promise<T | undefined> {
    if (!this.isReady || !this.#breaker.allows()) return AWAY;
    return new Promise((resolve) =>
      this.#request(command, (reply) => resolve(reply instanceof Late ? undefined : reply)),
    );
  }

  /** Runs one read for `hedge`. While the circuit breaker is open, its reply is late at once. @param isLate the same in any state */
  read<T>(command: (redis: RedisClient) => Promise<T>, onReply: OnReply<T>, isLate = false): void {
    if (!this.isReady) onReply(undefined);
    else if (this.#breaker.isClosed && !isLate) this.#request(command, onReply);
    else {
      const { promise, resolve } = Promise.withResolvers<T | undefined>();
      this.#request(command, (reply) => resolve(reply instanceof Late ? reply.reply : reply));
      onReply(new Late(promise));
    }
  }

  #request<T>(command: (redis: RedisClient) => Promise<T>, onReply: OnReply<T>): void {
    const reply = command(this.#redis).then(
      (value) => {
        if (this.#deadline.end(waiting)) {
          this.#breaker.succeeded();
          onReply(value);
        }
        return value;
      },
      (error: unknown) => {
        this.#logger.debug({ err: error }, 'the cache did not answer');
        if (this.#deadline.end(waiting)) {
          // A server that rejects a command, e.g. a write when its memory is full, is not down.
          if (error instanceof ReplyError) this.#breaker.succeeded();
          else this.#breaker.failed();
          onReply(undefined);
        }
        return undefined;
      },
    );
    const waiting = this.#deadline.begin(() => {
      this.#breaker.failed();
      onReply(new Late(reply));
    });
  }

  /**
   * Reads a value for `hedge`; null if the cache has none. The reads of one turn of the event loop are one command, and those that
   * come before its reply are the next one: under load the client's work for a command is a large part of a miss.
   */
  get(key: string, onReply: OnReply<Buffer | null>): void {
    const batch = this.#open ?? this.#begin();
    batch.keys.push(key);
    batch.waiting.push(onReply);
    if (batch.keys.length === AT_ONCE) this.#send(batch);
  }

  #begin(): Batch {
    const batch: Batch = { keys: [], waiting: [] };
    this.#open = batch;
    if (this.#underway === 0) setImmediate(() => this.#sendOpen(false));
    return batch;
  }

  #sendOpen(isLate: boolean): void {
    if (this.#open && this.#underway === 0) this.#send(this.#open, isLate);
  }

  #send({ keys, waiting }: Batch, isLate = false): void {
    this.#open = undefined;
    this.#underway += 1;
    this.read(
      (redis) => redis.mgetBuffer(keys),
      (values) => {
        this.#underway -= 1;
        // Its reads have waited for a late command already.
        this.#sendOpen(values instanceof Late);
        for (let i = 0; i < waiting.length; i++)
          waiting[i]?.(
            values instanceof Late ? new Late(values.reply.then((late) => late?.[i])) : values?.[i],
          );
      },
      isLate,
    );
  }

  /**
   * Reads from Postgres too once the cache is late or has no value. The first answer wins. A failure is that of Postgres.
   * @param accept returns what a reply has; null or undefined for none
   */
  hedge<R, T>(
    request: (onReply: OnReply<R>) => void,
    accept: (reply: R | undefined) => MaybePromise<T | null | undefined>,
    fromPostgres: () => Promise<T>,
  ): Promise<T> {
    // A batch has reads of several requests. Each goes on in its request's context, so that the log names the request.
    return new Promise<Reply<R>>(request).then((reply) => {
      if (reply instanceof Late) {
        const stored = fromPostgres();
        const late = reply.reply.then(accept).then((found) => found ?? stored);
        return Promise.any([stored, late]).catch(() => stored);
      }
      const found = accept(reply);
      if (found instanceof Promise) return found.then((each) => each ?? fromPostgres());
      return found ?? fromPostgres();
    });
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
  /** Undefined after `end`: the set keeps what it had in memory until the next major collection. */
  expire: (() => void) | undefined;
}

/**
 * Ends waits that take long. Time is counted in ticks of the event loop. While this process stalls no time passes, because the
 * server may have answered already.
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

  /** @param expire is called after the deadline, unless `end` was called before */
  begin(expire: () => void): Waiting {
    // The next tick may come at once.
    const waiting = { until: this.#tick + TICKS + 1, expire };
    this.#waiting.add(waiting);
    this.#timer ??= setInterval(() => this.#onTick(), this.#tickMs);
    return waiting;
  }

  /** Returns false after the deadline. */
  end(waiting: Waiting): boolean {
    waiting.expire = undefined;
    return this.#waiting.delete(waiting);
  }

  #onTick(): void {
    this.#tick += 1;
    for (const waiting of this.#waiting) {
      if (waiting.until > this.#tick) break;
      this.#waiting.delete(waiting);
      waiting.expire?.();
    }
    if (this.#waiting.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
