import type { Logger } from 'pino';
import type { RedisClient } from '../../redis/redis.ts';
import { isRejection } from './publish-documents.ts';
import type { Publisher } from './publisher.ts';

/** Milliseconds between two checks for dirty documents, e.g. of a command that could not reach the cache. */
const DIRTY_CHECK_MS = 2000;
/** The same during an outage, after which the database may be in an earlier state. */
const OUTAGE_CHECK_MS = 200;
const COMPARE_EVERY_MS = 5000;
/** Ratio of the pause to the preceding comparison: comparisons take at most a twentieth of the time. */
const PAUSE_FACTOR = 19;

export interface PublishLoopOptions {
  readonly publisher: Pick<Publisher, 'publishDirty' | 'compare' | 'onLost'>;
  readonly cache: Pick<RedisClient, 'status' | 'on' | 'off'>;
  readonly onLost: (listener: () => void) => void;
  readonly logger: Logger;
  readonly compareEveryMs?: number;
}

/**
 * Publishes dirty documents every two seconds, and compares the cache with Postgres every five. It compares at once after a
 * lost connection or a lost end of the stream: the cache may have lost documents, and the database may have returned to an earlier state.
 */
export function startPublishLoop(options: PublishLoopOptions): AsyncDisposable {
  const { publisher, cache, onLost, logger, compareEveryMs = COMPARE_EVERY_MS } = options;
  const checkEveryMs = Math.min(DIRTY_CHECK_MS, compareEveryMs);
  let running: Promise<unknown> | undefined;
  let mayDiffer = true;
  let compareAt = 0;
  let again = false;
  let hasFailed = false;
  let isOver = false;
  let timer: NodeJS.Timeout;
  const next = (ms: number) => {
    clearTimeout(timer);
    if (!isOver) timer = setTimeout(start, ms);
  };
  /** Returns the milliseconds until the next round. */
  const round = async (): Promise<number> => {
    const began = performance.now();
    const compares = mayDiffer || began >= compareAt;
    mayDiffer = false;
    again = false;
    let isOutage = false;
    try {
      await (compares ? publisher.compare() : publisher.publishDirty());
      hasFailed = false;
    } catch (error) {
      isOutage = !isRejection(error);
      mayDiffer ||= isOutage;
      logger[hasFailed ? 'debug' : 'warn']({ err: error }, 'publishing failed; the worker retries it');
      hasFailed = true;
    }
    const tookMs = performance.now() - began;
    if (compares) compareAt = performance.now() + Math.max(compareEveryMs, tookMs * PAUSE_FACTOR);
    // A slow failure is followed by an equally long pause.
    const soon = Math.min(checkEveryMs, Math.max(OUTAGE_CHECK_MS, tookMs));
    return again || isOutage ? soon : checkEveryMs;
  };
  const start = () => {
    // The end of the running round, or the cache's next connection, starts another one.
    if (running || cache.status !== 'ready') return next(checkEveryMs);
    running = round().then((ms) => {
      running = undefined;
      next(ms);
    });
  };
  const now = () => {
    mayDiffer = true;
    again = true;
    if (!running) start();
  };
  next(checkEveryMs);
  cache.on('ready', now);
  onLost(now);
  publisher.onLost(now);
  return {
    async [Symbol.asyncDispose]() {
      isOver = true;
      clearTimeout(timer);
      cache.off('ready', now);
      await running;
    },
  };
}
