/** Real servers with a small published catalogue and clusters, for readers in other processes. */

import { openStore, type Store } from '../../src/db/connection/connect.ts';
import { createToken } from '../../src/db/tokens.ts';
import { openRedis, redisReady } from '../../src/redis/redis.ts';
import { withFence } from '../../src/snapshot/publish/fence.ts';
import { Publisher, startHeartbeat } from '../../src/snapshot/publish/publisher.ts';
import { createDatabase } from '../support/postgres.ts';
import { startTestRedis } from '../support/redis.ts';
import { addMachines, addPlan, addSample, type Sample } from './rows.ts';

export interface Published extends AsyncDisposable {
  readonly databaseUrl: string;
  readonly redisUrl: string;
  readonly sample: Sample;
  /** Token of the organization that has clusters, with all scopes. */
  readonly token: string;
  /** The machines of the region that has any. */
  readonly list: string;
  /** One path of each operation; all answer 200. */
  readonly paths: readonly string[];
}

export async function startPublished(): Promise<Published> {
  const opened = new AsyncDisposableStack();
  try {
    const db = opened.use(await createDatabase());
    const redis = opened.use(await startTestRedis());
    const store = opened.use(openStore({ url: db.url, role: 'worker', connections: 2 }));
    const sample = await addSample(store.sql);
    await addMachines(store.sql, sample.region, 30);
    await addPlan(store.sql, sample.region);
    const publisher = opened.use(await startPublisher(store.db, redis.url));
    await publisher.publishDirty();
    const scopes = ['machines:read', 'clusters:read'] as const;
    const { token } = await createToken(store.db, { organizationId: sample.a, scopes });
    const list = `/v1/machines?provider=${sample.provider}&region=${sample.region}`;
    return {
      databaseUrl: db.url,
      redisUrl: redis.url,
      sample,
      token,
      list,
      paths: [
        '/v1/providers',
        list,
        `/v1/machines/${sample.small}`,
        `/v1/machines/${sample.small}/prices`,
        '/v1/clusters',
        '/v1/clusters/cluster-test',
      ],
      [Symbol.asyncDispose]: () => opened.disposeAsync(),
    };
  } catch (error) {
    await opened.disposeAsync();
    throw error;
  }
}

export interface RunningPublisher extends Disposable, Pick<Publisher, 'publishDirty'> {}

/** A publisher with a worker's heartbeat: readers trust the cache while they receive it. */
export async function startPublisher(db: Store['db'], redisUrl: string): Promise<RunningPublisher> {
  const cache = withFence(openRedis(redisUrl, 'publisher', () => {}));
  await redisReady(cache, 5000);
  const publisher = new Publisher(db, cache);
  const heartbeat = startHeartbeat(() => publisher.heartbeat(), 100);
  return {
    publishDirty: () => publisher.publishDirty(),
    [Symbol.dispose]() {
      heartbeat[Symbol.dispose]();
      cache.disconnect();
    },
  };
}
