import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { composeReader } from '../../src/app/reader.ts';
import { composeWorker } from '../../src/app/worker.ts';
import { type Config, readConfig } from '../../src/config/config.ts';
import { migrate } from '../../src/db/migration/migrate.ts';
import { SAMPLE_RATES } from '../../src/dev/sample/rates.ts';
import { SAMPLE_HETZNER_TOKEN, startSampleUpstream } from '../../src/dev/sample/upstream.ts';
import { openRedis, redisReady } from '../../src/redis/redis.ts';
import { startHeartbeat } from '../../src/snapshot/publish/publisher.ts';
import { startWorker } from '../../workers/main.ts';
import { DOCKER, needs } from '../support/needs.ts';
import { until } from '../support/until.ts';
import { startPostgresContainer, startRedisContainer } from './images.ts';

const logger = pino({ level: 'silent' });

describe(
  'the sample catalogue through the official images of PostgreSQL and Redis',
  needs(inject('docker'), DOCKER),
  () => {
    const cleanUp = new AsyncDisposableStack();
    afterAll(() => cleanUp.disposeAsync());
    let config: Config;

    beforeAll(async () => {
      const [database, redis, upstream] = await Promise.all([
        startPostgresContainer(),
        startRedisContainer(),
        startSampleUpstream(),
      ]);
      for (const server of [upstream, redis, database]) cleanUp.use(server);
      config = readConfig({
        DATABASE_URL: database.getConnectionUri(),
        REDIS_URL: redis.getConnectionUrl(),
        HETZNER_URL: upstream.hetznerUrl,
        HETZNER_TOKEN: SAMPLE_HETZNER_TOKEN,
        LINODE_URL: upstream.linodeUrl,
        CATALOGUE_RATES: `EUR:${SAMPLE_RATES.rates.EUR}`,
      });
      await migrate(database.getConnectionUri());
    });

    /** Reads each region's list of machines, with the tier that answered. */
    async function readAll() {
      await using reader = await composeReader(config, logger);
      // The reader trusts the cache from the first heartbeat on.
      await until(async () => (await reader.readiness()).checks.cache === 'ok');
      const listing = await reader.catalogue.providers();
      const providers = JSON.parse(listing.body.identity.toString()) as {
        id: number;
        name: string;
        regions: { id: number }[];
      }[];
      const tiers = new Set<string>();
      const machines: Record<string, number> = {};
      for (const provider of providers) {
        for (const region of provider.regions) {
          const answer = await reader.catalogue.machines(provider.id, region.id);
          tiers.add(answer.tier);
          const list = JSON.parse(answer.body.identity.toString()) as unknown[];
          machines[provider.name] = (machines[provider.name] ?? 0) + list.length;
        }
      }
      return { machines, tiers };
    }

    /** The same once Redis alone answers: a reader that gets no answer within 50 ms queries PostgreSQL. */
    function readFromRedis() {
      return until(
        async () => {
          const { machines, tiers } = await readAll();
          return tiers.size === 1 && tiers.has('redis') && machines;
        },
        { what: 'Redis answers everything', timeoutMs: 60_000 },
      );
    }

    it('is synced, published, read from Redis, and read from PostgreSQL once Redis is empty', async () => {
      await using writer = composeWorker(config, logger);
      await redisReady(writer.cache, 10_000);
      using _heartbeat = startHeartbeat(() => writer.publisher.heartbeat());
      for (const source of config.sources) {
        expect(await writer.runSource(source)).toMatchObject({ outcome: 'changed', broken: [] });
      }
      await writer.publisher.publishDirty();
      const published = await readFromRedis();
      expect(published.Hetzner).toBe(38);
      expect(published.Linode).toBeGreaterThan(200);

      await writer.cache.flushall();
      const fallenBack = await readAll();
      expect(fallenBack.machines).toEqual(published);
      expect(fallenBack.tiers).toContain('postgres');

      await writer.cache.flushall();
      expect((await writer.publisher.compare()).published).toBeGreaterThan(30);
      expect(await readFromRedis()).toEqual(published);
    });

    it('changes nothing when it is synced again', async () => {
      await using writer = composeWorker(config, logger);
      await redisReady(writer.cache, 10_000);
      for (const source of config.sources) {
        expect(await writer.runSource(source)).toMatchObject({ outcome: 'unchanged' });
      }
      expect(await writer.publisher.publishDirty()).toEqual({ published: 0 });
    });

    it('is not synced through a Redis that may evict jobs', async () => {
      const redis = openRedis(config.settings.REDIS_URL ?? '', 'producer', () => {});
      cleanUp.defer(() => redis.disconnect());
      await redisReady(redis, 10_000);
      await redis.config('SET', 'maxmemory-policy', 'allkeys-lru');
      await expect(startWorker(config, logger)).rejects.toThrow('its maxmemory-policy is allkeys-lru');
    });
  },
);
