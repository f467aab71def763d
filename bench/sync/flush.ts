/** Republishes everything after a loss of the cache, under load. */
import type { Redis } from 'ioredis';
import type { Database } from '../support/servers.ts';
import { runWorker } from './child.ts';
import { type Reading, readDuring } from './reading.ts';
import type { Measured } from './worker.ts';

export interface AfterFlush {
  readonly measured: Measured;
  readonly reading: Reading;
  readonly redisBytes: number;
}

export async function publishAfterFlush(options: {
  readonly database: Database;
  readonly redis: Redis;
  readonly redisUrl: string;
  readonly offers: number;
}): Promise<AfterFlush> {
  const { database, redis, redisUrl, offers } = options;
  const { sql, url } = database;
  const regions = await sql<{ id: number; providerId: number }[]>`
    select id, provider_id as "providerId" from regions order by id`;
  let measured: Measured | undefined;
  let empty = 0;
  const reading = await readDuring(
    {
      databaseUrl: url,
      redisUrl,
      providerId: regions[0]?.providerId ?? 0,
      regionIds: regions.map(({ id }) => id),
    },
    async () => {
      await redis.flushall();
      empty = await usedMemory(redis);
      measured = await runWorker({
        what: 'sweep',
        databaseUrl: url,
        redisUrl,
        shape: { offers, edition: 0 },
      });
    },
  );
  if (!measured) throw new Error('unreachable: the reading ends with the publishing');
  return { measured, reading, redisBytes: (await usedMemory(redis)) - empty };
}

async function usedMemory(redis: Redis): Promise<number> {
  return Number(/^used_memory:(\d+)/m.exec(await redis.info('memory'))?.[1]);
}
