import type { Logger } from 'pino';
import type { SourceConfig } from '../src/config/config.ts';
import type { Database } from '../src/db/connection/connect.ts';
import type { RedisClient } from '../src/redis/redis.ts';
import { SCHEDULES_KEY } from '../src/snapshot/document/keys.ts';
import { disabledSources } from '../src/sync/runs/disabled.ts';

/** Seconds after which the schedules of stopped workers are gone. */
const STORED_FOR_S = 300;

/** Stores in the cache when sources run, for readers. A disabled source is left out. It never fails. */
export async function storeSchedules(
  db: Database,
  cache: RedisClient,
  sources: readonly Pick<SourceConfig, 'id' | 'schedule'>[],
  logger: Logger,
): Promise<void> {
  try {
    const disabled = await disabledSources(db);
    const running = sources.filter(({ id }) => !disabled.has(id));
    if (disabled.size > 0) await cache.hdel(SCHEDULES_KEY, ...disabled.keys());
    if (running.length > 0)
      await cache.hset(SCHEDULES_KEY, Object.fromEntries(running.map(({ id, schedule }) => [id, schedule])));
    await cache.expire(SCHEDULES_KEY, STORED_FOR_S);
  } catch (error) {
    logger.debug({ err: error }, 'the schedules were not stored; the worker retries it in a minute');
  }
}
