import { ReplyError } from 'ioredis';
import type { Logger } from 'pino';
import type { RedisClient } from '../../redis/redis.ts';
import { type CacheKeys, type DocumentName, LINEAGE_KEY } from '../document/keys.ts';
import { setIfNewer } from '../publish/fence.ts';
import { Breaker } from './breaker.ts';
import { LoopDeadline } from './loop-deadline.ts';

/** Milliseconds for a reply. */
const DEADLINE_MS = 50;
/** How many times longer a read may take that no other tier can replace. */
const PATIENCE = 20;
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
    this.#lateDeadline = new LoopDeadline(PATIENCE * deadlineMs);
    this.#breaker = new Breaker({ failuresToOpen: 3, retryAfterMs: 500, now });
  }

  get isReady(): boolean {
    return !this.isOff && this.#redis.status === 'ready';
  }

  /** Runs one command under the circuit breaker. Undefined if the cache does not answer. */
  run<T>(command: (redis: RedisClient) => Promise<T>): Promise<T | undefined> {
    return this.isReady && this.#breaker.allows() ? this.runAlways(command) : Promise.resolve(undefined);
  }

  /** The same in any state of the circuit breaker, and for up to a second: a busy cache is late, and no other tier answers. */
  runPatiently<T>(command: (redis: RedisClient) => Promise<T>): Promise<T | undefined> {
    return this.isReady ? this.runAlways(command, this.#lateDeadline) : Promise.resolve(undefined);
  }

  /** Runs one command in any state of the circuit breaker, and so detects the return of the cache. */
  async runAlways<T>(
    command: (redis: RedisClient) => Promise<T>,
    deadline = this.#deadline,
  ): Promise<T | undefined> {
    try {
      const result = await deadline.within(command(this.#redis));
      this.#breaker.succeeded();
      return result;
    } catch (error) {
      // A server that rejects a command, e.g. a write when its memory is full, is not down.
      if (error instanceof ReplyError) this.#breaker.succeeded();
      else this.#breaker.failed();
      this.#logger.debug({ err: error }, 'the cache did not answer');
      return undefined;
    }
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

export async function readState(redis: RedisClient, keys: CacheKeys) {
  // First: the revisions then include everything published until these times.
  const verified = await redis.hgetall(keys.verified);
  const [lineage, revisions] = await Promise.all([
    redis.get(LINEAGE_KEY),
    Promise.all(Array.from({ length: keys.lanes }, (_, lane) => redis.get(keys.revision(lane)))),
  ]);
  return { verified, lineage, revisions: revisions.map((text) => Number(text ?? 0)) };
}
