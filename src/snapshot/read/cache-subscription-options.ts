import type { Redis } from 'ioredis';
import type { Logger } from 'pino';
import type { RedisClient } from '../../redis/redis.ts';

export interface CacheSubscriptionEvents {
  onPublished(id: string, version: number): void;
  /** Messages may be lost: memory is compared before its next use. */
  onGap(): void;
  onUnlinked(): void;
  /** The cache names another lineage than the one in use. */
  onLineage(lineage: string): void;
  /** Receives the stamps of the cache, see `loadFreshness`. @param isLinked memory is known to be as new */
  onVerified(stamps: Readonly<Record<string, string>>, isLinked: boolean): void;
}

export interface CacheSubscriptionOptions {
  /** Opened for use `reader`, with the fence. */
  readonly commands: RedisClient;
  /** Opened for use `subscriber`. */
  readonly subscriber: Redis;
  readonly logger: Logger;
  readonly now?: () => number;
  /** Milliseconds that a read of the cache may take. */
  readonly deadlineMs?: number;
  readonly pollMs?: number;
  readonly silentAfterMs?: number;
}
