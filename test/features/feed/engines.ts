/** The engines on which the property of copies runs. */

import { startReplicatedPostgres } from '../../engines/postgres-replica.ts';
import { startTestCluster } from '../../engines/redis-cluster.ts';
import type { ReaderOptions } from '../../snapshot/scene.ts';
import { faultProxy } from '../../support/fault-proxy.ts';
import type { TestDatabase } from '../../support/postgres.ts';
import { createDatabase } from '../../support/postgres.ts';
import { startTestRedis } from '../../support/redis.ts';

export interface Engine {
  readonly db: TestDatabase;
  readonly redis: { readonly url: string };
  readonly reader: Partial<ReaderOptions>;
  cut(): void;
  fallBehind(): void;
  catchUp(): Promise<void>;
}

const IN_STEP = { fallBehind: () => {}, catchUp: async () => {} };

export const ENGINES: Readonly<Record<string, (stack: AsyncDisposableStack) => Promise<Engine>>> = {
  'one Redis, one PostgreSQL': async (stack) => {
    const db = stack.use(await createDatabase());
    const redis = stack.use(await startTestRedis());
    const proxy = stack.use(await faultProxy(redis.url));
    return { db, redis, reader: { redisUrl: proxy.url }, cut: () => proxy.cut(), ...IN_STEP };
  },
  'a Redis Cluster': async (stack) => {
    const db = stack.use(await createDatabase());
    const redis = stack.use(await startTestCluster({ replicas: 0 }));
    const cut = () => {
      for (const { client } of redis.nodes) client.call('CLIENT', 'KILL', 'TYPE', 'pubsub').catch(() => {});
    };
    return { db, redis, reader: {}, cut, ...IN_STEP };
  },
  'readers on a replica': async (stack) => {
    const servers = stack.use(await startReplicatedPostgres());
    const db = { url: servers.primary.url, name: 'fleetbook', [Symbol.asyncDispose]: async () => {} };
    const redis = stack.use(await startTestRedis());
    const proxy = stack.use(await faultProxy(redis.url));
    return {
      db,
      redis,
      reader: { redisUrl: proxy.url, replicaUrl: servers.replica.url },
      cut: () => proxy.cut(),
      fallBehind: () => servers.stream.hang(),
      async catchUp() {
        await servers.stream.heal();
        await servers.caughtUp();
      },
    };
  },
};
