import { performance } from 'node:perf_hooks';
import { describe, expect, it } from 'vitest';
import { composeReader } from '../../src/app/reader.ts';
import { BadSetting } from '../../src/config/settings.ts';
import { openRedis, redisReady } from '../../src/redis/redis.ts';
import { SCHEDULES_KEY } from '../../src/snapshot/document/keys.ts';
import { startWorker, type WorkerProcess } from '../../workers/main.ts';
import { startTestRedis } from '../support/redis.ts';
import { until } from '../support/until.ts';
import {
  cacheRedis,
  config,
  jobIsDelayed,
  jobOf,
  opened,
  queueRedis,
  requestNow,
  runs,
  settled,
  silent,
  start,
  stateOf,
  store,
  succeeded,
  upstream,
  useServers,
} from './scene.ts';

useServers();

describe('a worker', () => {
  it('syncs and publishes each source at its first start, and nothing if another starts in the same slot', async () => {
    const first = await start();
    await settled(first);
    const stored = openRedis(cacheRedis.url, 'reader', () => {});
    opened.defer(() => stored.disconnect());
    // Readers state the next run of old data from these.
    const schedules = Object.fromEntries(config().sources.map(({ id, schedule }) => [id, schedule]));
    await until(async () => (await stored.hlen(SCHEDULES_KEY)) === config().sources.length);
    expect(await stored.hgetall(SCHEDULES_KEY)).toEqual(schedules);
    // For the charts of the console.
    await until(async () => (await first.queues.sync.getMetrics('completed')).meta.count > 0);
    const reader = opened.use(await composeReader(config(), silent));
    const listing = await until(async () => {
      const answer = await reader.catalogue.providers();
      return (
        answer.tier !== 'postgres' &&
        (JSON.parse(answer.body.identity.toString()) as { id: number; regions: { id: number }[] }[])
      );
    });
    expect(listing.map(({ id }) => id)).toEqual([5, 6]);
    const region = listing[0]?.regions[0]?.id ?? 0;
    await until(async () => (await reader.catalogue.machines(5, region)).tier === 'memory');
    const machines = JSON.parse((await reader.catalogue.machines(5, region)).body.identity.toString());
    expect(machines.length).toBeGreaterThan(0);

    const before = (await runs()).length;
    await first[Symbol.asyncDispose]();
    const calls = { ...upstream.calls };
    const second = await start();
    await until(
      async () =>
        (await second.queues.sweep.getCompletedCount()) > 0 ||
        (await second.queues.sync.getJobCountByTypes('completed')) > 0,
    );
    const [open] = await store.sql<
      { slots: number }[]
    >`select count(*)::integer as slots from schedule_slots where enqueued_at is null`;
    expect(open?.slots).toBe(0);
    expect(upstream.calls).toEqual(calls);
    expect((await runs()).length).toBe(before);
  });

  it('takes a machine out of the catalogue when its end comes, although its source is not read', async () => {
    const worker = await start();
    await settled(worker);
    const [machine] = await store.sql<{ id: number }[]>`
      update machines set orderable_until = now() - interval '1 second'
      where id = (select min(id) from machines where excluded_reason is null and source_id = 'hetzner') returning id`;
    const reader = opened.use(await composeReader(config(), silent));
    const find = async () => (await reader.catalogue.machine(machine?.id ?? 0)) !== undefined;
    expect(await find()).toBe(true);
    await worker.queues.sweep.add('sweep', {});
    await until(async () => !(await find()));
    const before = (await runs()).length;
    expect(await store.sql`select change from machine_changes`).toEqual([{ change: 'withdrawn' }]);
    expect((await runs()).length).toBe(before);
  });

  it('gives the sample the same ids at each first start, whichever upstream is slow', async () => {
    const gate = Promise.withResolvers<void>();
    upstream.behaviours.hetzner = { until: gate.promise };
    const worker = await start({ FLEETBOOK_CONTENT: 'sample' });
    await until(() => upstream.calls.hetzner > 0);
    await jobIsDelayed(worker, 'linode');
    expect(upstream.calls.linode).toBe(0);
    upstream.behaviours.hetzner = 'well';
    gate.resolve();
    await settled(worker);
    const first = await store.sql<{ provider: number; region: number; machine: number }[]>`
      select r.provider_id as provider, min(r.id) as region, min(m.id) as machine
      from regions r join machines m on m.region_id = r.id group by 1 order by 1`;
    const hetzner = await store.sql`select from machines where source_id = 'hetzner'`;
    expect(first).toEqual([
      { provider: 5, region: 1, machine: 1 },
      { provider: 6, region: 7, machine: hetzner.length + 1 },
    ]);
  });

  it('syncs the rest of the sample after an unreadable source', async () => {
    upstream.behaviours.hetzner = { status: 401 };
    await start({ FLEETBOOK_CONTENT: 'sample' });
    await until(async () => (await succeeded('linode')) && (await succeeded('clusters')));
    expect((await runs()).map(({ source, outcome }) => `${source} ${outcome}`)).toContain('hetzner failed');
  });

  it('shares the slots with another that starts at the same moment', async () => {
    const [one] = await Promise.all([start(), start()]);
    await settled(one);
    const outcomes = (await runs()).filter(({ source }) => source !== 'clusters').map(({ source }) => source);
    expect(outcomes.sort()).toEqual(['hetzner', 'linode']);
  });
});

describe('the result of a job', () => {
  const resultOf = async (worker: WorkerProcess, source: string) => {
    const job = await jobOf(worker, source);
    await until(async () => (await stateOf(worker, source)) === 'completed');
    return (await worker.queues.sync.getJob(job.id ?? ''))?.returnvalue;
  };

  it('states what was stored and published', async () => {
    const worker = await start();
    await settled(worker);
    expect(await resultOf(worker, 'hetzner')).toMatchObject({ outcome: 'changed', published: true });
  });

  it('of a held batch states the reason and the remedy, and counts no row as added', async () => {
    const worker = await start();
    await settled(worker);
    // As many again that the source no longer lists.
    await store.sql`
      insert into machines (region_id, name, cpu, ram, ram_unit, price, source_id, source_amount, source_per, source_currency)
      select region_id, name || ' of old', cpu, ram, ram_unit, price, source_id, source_amount, source_per, source_currency
      from machines where source_id = 'hetzner'`;
    await requestNow('hetzner');
    const result = await until(async () => {
      const jobs = await worker.queues.sync.getCompleted();
      return jobs.find(({ returnvalue }) => returnvalue?.outcome === 'held')?.returnvalue;
    });
    expect(result).toEqual({
      outcome: 'held',
      stored: false,
      reasons: [expect.stringMatching(/\d/)],
      decide: 'fleetbook hold show hetzner',
      seen: expect.any(Number),
    });
  });
});

it('a job states its cause: a slot, another source, or an operator', async () => {
  const worker = await start();
  await settled(worker);
  const before = (await runs()).length;
  expect(await requestNow('hetzner')).toEqual({ starts: 'now', currentRun: null });
  await until(async () => (await runs()).length > before);
  const causes = await store.sql<{ source: string; cause: string; by: string | null; hasSlot: boolean }[]>`
    select distinct source_id as source, cause, asked_by as by, slot is not null as "hasSlot" from sync_runs
    order by 1, 2`;
  expect(causes.filter(({ source }) => source === 'hetzner')).toEqual([
    { source: 'hetzner', cause: 'first', by: null, hasSlot: true },
    { source: 'hetzner', cause: 'hand', by: 'ada', hasSlot: false },
  ]);
  expect(causes).toContainEqual({ source: 'linode', cause: 'first', by: null, hasSlot: true });
});

describe('a cache that lost all data', () => {
  const documents = async () => {
    const cache = openRedis(cacheRedis.url, 'publisher', () => {});
    await redisReady(cache, 5000);
    const keys = await cache.keys('fb:{*}:region:*');
    cache.disconnect();
    return keys.length;
  };

  /** Empties the cache. Returns its documents in the same transaction: the worker fills it again at any time. */
  const flushed = async () => {
    const cache = openRedis(cacheRedis.url, 'publisher', () => {});
    await redisReady(cache, 5000);
    const [, found] = (await cache.multi().flushall().keys('fb:{*}:region:*').exec()) ?? [];
    cache.disconnect();
    return found?.[1];
  };

  it('is filled again by the next round, and at once after an outage', async () => {
    const worker = await start();
    await settled(worker);
    const regions = await documents();
    expect(regions).toBeGreaterThan(10);
    expect(await flushed()).toEqual([]);
    await until(async () => (await documents()) === regions);

    await cacheRedis.kill();
    await cacheRedis.restart();
    await until(async () => (await documents()) === regions);
  });
});

describe('the queues’ Redis', () => {
  it('is rejected if it may evict jobs, with the remedy', async () => {
    await using evicting = await startTestRedis(['--maxmemory-policy', 'allkeys-lru']);
    const refused = startWorker(config({ QUEUE_REDIS_URL: evicting.url }), silent);
    await expect(refused).rejects.toThrow(BadSetting);
    await expect(refused).rejects.toThrow(/allkeys-lru.*noeviction.*QUEUE_REDIS_URL/);
  });

  it('may be away for a while: the worker continues when it is back', async () => {
    upstream.behaviours.hetzner = { status: 500 };
    const worker = await start();
    await until(() => succeeded('linode'));
    await queueRedis.kill();
    await store.sql`delete from schedule_slots where schedule = 'hetzner'`;
    upstream.behaviours.hetzner = 'well';
    await queueRedis.restart();
    await until(() => succeeded('hetzner'));
    expect(await stateOf(worker, 'hetzner')).toMatch(/active|completed/);
  });
});

describe('a stopped worker', () => {
  it('lets its jobs end', async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    upstream.behaviours.linode = { until: promise };
    const worker = await start();
    await until(() => upstream.calls.linode > 0);
    const stopping = worker[Symbol.asyncDispose]();
    upstream.behaviours.linode = 'well';
    resolve();
    await stopping;
    expect(await succeeded('linode')).toBe(true);
  });

  it('returns a job that does not end in time, and another worker does it', async () => {
    upstream.behaviours.linode = { until: new Promise(() => {}) };
    const worker = await start({}, 200);
    await until(() => upstream.calls.linode > 0);
    await until(() => succeeded('hetzner'));
    const began = performance.now();
    await worker[Symbol.asyncDispose]();
    expect(performance.now() - began).toBeLessThan(4000);
    expect(
      await store.sql`select outcome, error from sync_runs where source_id = 'linode' order by id desc limit 1`,
    ).toEqual([{ outcome: 'failed', error: 'aborted: the worker stops' }]);
    upstream.behaviours.linode = 'well';
    await start();
    await until(() => succeeded('linode'));
    expect(
      (await runs()).filter(({ source, outcome }) => source === 'linode' && outcome === 'changed'),
    ).toHaveLength(1);
  });
});
