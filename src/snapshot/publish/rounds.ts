/** When a worker publishes. */
import type { Logger } from 'pino';
import type { RedisClient } from '../../redis/redis.ts';
import type { Publisher } from './publisher.ts';
import { isRefusal } from './refusal.ts';

/** Pause until rows are found that no job has published, e.g. a token that a command created while the cache was away. */
const DIRTY_CHECK_MS = 2000;
/** The same while PostgreSQL or the cache is away: when it is back the database may be in an earlier state. */
const AWAY_CHECK_MS = 200;
/** Milliseconds between two comparisons of the cache with PostgreSQL. */
const COMPARE_EVERY_MS = 5000;
/** The pause after a comparison is so many times as long as the comparison: it takes at most a twentieth of the time. */
const PAUSE_FACTOR = 19;

export interface PublishingRoundsOptions {
  readonly publisher: Pick<Publisher, 'publishDirty' | 'compare'>;
  readonly cache: Pick<RedisClient, 'status' | 'on' | 'off'>;
  /** Adds a listener that is called when connections to Postgres were lost. */
  readonly onLost: (listener: () => void) => void;
  readonly logger: Logger;
  readonly compareEveryMs?: number;
}

/**
 * Publishes what is dirty every two seconds, and compares the cache with Postgres every five. It compares at once when a
 * lost cache or database is back: the cache may have lost what it held, and the database may have gone back.
 */
export function publishingRounds(options: PublishingRoundsOptions): AsyncDisposable {
  const { publisher, cache, onLost, logger, compareEveryMs = COMPARE_EVERY_MS } = options;
  const checkEveryMs = Math.min(DIRTY_CHECK_MS, compareEveryMs);
  let under: Promise<unknown> | undefined;
  let mayDiffer = true;
  let compareAt = 0;
  let again = false;
  let hasFailed = false;
  let isOver = false;
  let timer: NodeJS.Timeout;
  const next = (ms: number) => {
    clearTimeout(timer);
    if (!isOver) timer = setTimeout(round, ms);
  };
  const round = () => {
    // The end of a round starts the next one, and so does a cache that is ready again.
    if (under || cache.status !== 'ready') return next(checkEveryMs);
    const began = performance.now();
    const compares = mayDiffer || began >= compareAt;
    mayDiffer = false;
    again = false;
    let isAway = false;
    under = (compares ? publisher.compare() : publisher.publishDirty())
      .then(
        () => {
          hasFailed = false;
        },
        (error: unknown) => {
          isAway = !isRefusal(error);
          mayDiffer ||= isAway;
          logger[hasFailed ? 'debug' : 'warn']({ err: error }, 'publishing failed; it is tried again');
          hasFailed = true;
        },
      )
      .finally(() => {
        under = undefined;
        const tookMs = performance.now() - began;
        if (compares) compareAt = performance.now() + Math.max(compareEveryMs, tookMs * PAUSE_FACTOR);
        // A round that fails slowly is not repeated all the time.
        const soon = Math.min(checkEveryMs, Math.max(AWAY_CHECK_MS, tookMs));
        next(again || isAway ? soon : checkEveryMs);
      });
  };
  const now = () => {
    mayDiffer = true;
    again = true;
    if (!under) round();
  };
  next(checkEveryMs);
  cache.on('ready', now);
  onLost(now);
  return {
    async [Symbol.asyncDispose]() {
      isOver = true;
      clearTimeout(timer);
      cache.off('ready', now);
      await under;
    },
  };
}
