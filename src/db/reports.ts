/** Reports of processes in the cache's Redis: one stream, bounded, which ends when nobody writes to it. */
import type { RedisClient } from './redis.ts';

/** About as many are kept: three hours of 27 processes, an hour of 80. */
const KEPT = 30_000;
/** Seconds after the last report until the stream goes. */
const EXPIRES = 4 * 3600;
const FIELD = 'report';

/** @throws what Redis fails with; whether it has arrived is not known then */
export async function addReport(redis: RedisClient, key: string, report: string): Promise<void> {
  await Promise.all([redis.xadd(key, 'MAXLEN', '~', KEPT, '*', FIELD, report), redis.expire(key, EXPIRES)]);
}

export interface StoredReport {
  /** The stream's id, `<milliseconds since 1970 by Redis' clock>-<n>`. */
  readonly id: string;
  readonly text: string;
}

export interface ReadReports {
  /** Milliseconds since 1970, by the clock that the ids are of. */
  readonly now: number;
  /** Oldest first. */
  readonly reports: readonly StoredReport[];
}

/** Reports after an id, or of the last `ms` milliseconds where none is given. @throws what Redis fails with */
export async function readReports(
  redis: RedisClient,
  key: string,
  { after, ms }: { readonly after: string | undefined; readonly ms: number },
): Promise<ReadReports> {
  // Of the server that made the ids, also in a Redis Cluster.
  const [seconds, micros] = (await redis.eval("return redis.call('TIME')", 1, key)) as [string, string];
  const now = Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
  const entries = await redis.xrange(key, after === undefined ? String(now - ms) : `(${after}`, '+');
  return { now, reports: entries.map(([id, [, text = '']]) => ({ id, text })) };
}
