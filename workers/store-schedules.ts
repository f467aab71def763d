import type { Logger } from 'pino';
import type { Database } from '../src/db/connection/connect.ts';
import { disabledSources } from '../src/db/sync/disabled.ts';
import type { RedisClient } from '../src/redis/redis.ts';
import { SCHEDULES_KEY } from '../src/snapshot/document/keys.ts';

/** Seconds after which the schedules of stopped workers are gone. */
const STORED_FOR_S = 300;

export interface ScheduledSource {
  readonly id: string;
  /** Five cron fields. */
  readonly schedule: string;
}

/** Stores in the cache when sources run, for readers. A disabled source is left out. It never fails. */
export async function storeSchedules(
  db: Database,
  cache: RedisClient,
  sources: readonly ScheduledSource[],
  logger: Logger,
): Promise<void> {
  try {
    const disabled = await disabledSources(db);
    for (const { id, schedule } of sources) {
      if (disabled.has(id)) await cache.hdel(SCHEDULES_KEY, id);
      else await cache.hset(SCHEDULES_KEY, id, schedule);
    }
    await cache.expire(SCHEDULES_KEY, STORED_FOR_S);
  } catch (error) {
    logger.debug({ err: error }, 'the schedules were not stored; the worker retries it in a minute');
  }
}
