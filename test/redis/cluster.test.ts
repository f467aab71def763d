import { afterAll, beforeAll, expect, it } from 'vitest';
import { openRedis, redisReady } from '../../src/redis/redis.ts';
import { startTestCluster, type TestCluster } from '../engines/redis-cluster.ts';
import { until } from '../support/until.ts';

let cluster: TestCluster;
beforeAll(async () => {
  cluster = await startTestCluster();
});
afterAll(() => cluster[Symbol.asyncDispose]());

it('the new master answers each command that a worker sent after the death of the old one', async () => {
  const redis = openRedis(cluster.url, 'worker', () => {});
  await redisReady(redis, 5000);
  await redis.set('jobs', 0);
  const master = await cluster.masterOf(Number(await redis.cluster('KEYSLOT', 'jobs')));
  await master.kill();

  let sent = 0;
  let answered = 0;
  await until(
    () => {
      sent += 1;
      void redis.incr('jobs').then(() => {
        answered += 1;
      });
      return answered > 0;
    },
    { what: 'an answer of the new master' },
  );
  await until(() => answered === sent, { what: 'the answers of all commands' });
  expect(Number(await redis.get('jobs'))).toBe(sent);
  redis.disconnect();
});
