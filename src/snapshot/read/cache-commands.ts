import { ReplyError } from 'ioredis';
import type { Logger } from 'pino';
import type { RedisClient } from '../../redis/redis.ts';
import type { CacheKeys, DocumentName } from '../document/keys.ts';
import { setIfNewer } from '../publish/fence.ts';
import { Breaker } from './breaker.ts';

/** Write-backs at once. More are skipped: making the values takes longer than reading them from Postgres. */
const WRITE_BACKS_AT_MOST = 64;
/** Seconds that a write-back lives, unless the publisher makes it permanent. */
const WRITE_BACK_SECONDS = 60;

/** Commands to the cache. A cache that does not answer is a miss. */
export class CacheCommands {
  readonly #redis: RedisClient;
  readonly #logger: Logger;
  readonly #breaker: Breaker;
  #writingBack = 0;

  constructor(redis: RedisClient, logger: Logger, now: () => number) {
    this.#redis = redis;
    this.#logger = logger;
    this.#breaker = new Breaker({ failuresToOpen: 3, retryAfterMs: 500, now });
  }

  get isReady(): boolean {
    return this.#redis.status === 'ready';
  }

  /** Runs one command under the circuit breaker. Undefined if the cache does not answer. */
  async ask<T>(command: (redis: RedisClient) => Promise<T>): Promise<T | undefined> {
    return this.isReady && this.#breaker.allows() ? this.try(command) : undefined;
  }

  /** The same without the circuit breaker: this finds out that the cache is back. */
  async try<T>(command: (redis: RedisClient) => Promise<T>): Promise<T | undefined> {
    try {
      const result = await command(this.#redis);
      this.#breaker.succeeded();
      return result;
    } catch (error) {
      // A server that refuses a command, e.g. a write when its memory is full, is not down.
      if (error instanceof ReplyError) this.#breaker.succeeded();
      else this.#breaker.failed();
      this.#logger.debug({ err: error }, 'the cache did not answer');
      return undefined;
    }
  }

  /** Offers a document of Postgres to the cache, fenced and for a short while. A failure is ignored. */
  writeBack(keys: CacheKeys, name: DocumentName, version: number, value: () => Promise<Buffer>): void {
    if (this.#writingBack >= WRITE_BACKS_AT_MOST) return;
    this.#writingBack += 1;
    void this.ask(async (redis) =>
      setIfNewer(redis, keys, name, version, await value(), WRITE_BACK_SECONDS),
    ).finally(() => {
      this.#writingBack -= 1;
    });
  }
}
