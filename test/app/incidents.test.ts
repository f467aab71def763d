/** Incidents of other services, end to end: an upstream's answers, a run, and the readers' data. */
import { type Logger, pino } from 'pino';
import { beforeAll, expect, it } from 'vitest';
import { composeReader } from '../../src/app/reader.ts';
import { composeWorker } from '../../src/app/worker.ts';
import { readConfig } from '../../src/config/config.ts';
import { redisReady } from '../../src/redis/redis.ts';
import type { Answer } from '../../src/snapshot/document/answer.ts';
import { startHeartbeat } from '../../src/snapshot/publish/publisher.ts';
import type { RetryPolicy } from '../../src/sources/http/retries.ts';
import type { SyncResult } from '../../src/sync/pipeline.ts';
import { startWorker } from '../../workers/main.ts';
import { YEARLY } from '../support/day.ts';
import { type FakeUpstream, fakeUpstream } from '../support/fake-upstream.ts';
import { createDatabase } from '../support/postgres.ts';
import { hetzner, priceList, type Row, scaleway, upcloud, ZONES } from '../support/provider-answers.ts';
import { startTestRedis, type TestRedis } from '../support/redis.ts';
import { NO_RETRIES, RETRIES_AT_ONCE } from '../support/request-retries.ts';
import { until } from '../support/until.ts';

const silent = pino({ level: 'silent' });
/** This many good runs in a row without a machine retire it. */
const RUNS = [1, 2, 3];

let redis: TestRedis;
beforeAll(async () => {
  redis = await startTestRedis();
  return () => redis[Symbol.asyncDispose]();
});

/** A machine as a reader gets it. */
interface Shown {
  readonly cpu: number;
  readonly ram: number;
  readonly ram_unit: string;
  /** Per minute, in EUR. */
  readonly price: number;
}

/** A separate database for writers and readers; prices are published in EUR. */
async function openFleetbook(
  sources: Record<string, string>,
  { requestRetries = NO_RETRIES, logger = silent }: { requestRetries?: RetryPolicy; logger?: Logger } = {},
) {
  await using opened = new AsyncDisposableStack();
  const database = opened.use(await createDatabase());
  const config = readConfig({
    ...sources,
    DATABASE_URL: database.url,
    REDIS_URL: redis.url,
    CATALOGUE_CURRENCY: 'EUR',
  });
  const worker = opened.use(composeWorker(config, logger, { requestRetries }));
  await redisReady(worker.cache, 5000);
  opened.use(startHeartbeat(() => worker.publisher.heartbeat(), 100));
  const closing = opened.move();
  async function readFromRedis(): Promise<Record<string, Shown> | undefined> {
    await using reader = await composeReader(config, silent);
    await until(async () => (await reader.readiness()).checks.cache === 'ok', {
      what: 'the reader is linked',
    });
    const json = ({ body }: Answer) => JSON.parse(body.identity.toString());
    const machines: Record<string, Shown> = {};
    for (const provider of json(await reader.catalogue.providers())) {
      for (const region of provider.regions) {
        const answer = await reader.catalogue.machines(provider.id, region.id);
        if (answer.tier !== 'redis') return undefined;
        for (const { name, cpu, ram, ram_unit, price } of json(answer)) {
          machines[`${region.code}/${name}`] = { cpu, ram, ram_unit, price };
        }
      }
    }
    return machines;
  }
  return {
    config,
    sql: worker.store.sql,
    /** One run and the publication after it, which also follows a failed run. */
    async sync(): Promise<SyncResult> {
      const [source] = config.sources;
      if (source === undefined) return expect.unreachable('no source is configured');
      try {
        return await worker.runSource(source);
      } finally {
        await worker.publisher.publishDirty();
      }
    },
    /** Reads the whole catalogue, by `region/machine`, as a new reader gets it from Redis. */
    async shown(): Promise<Record<string, Shown>> {
      const unpublished = await worker.store.sql`select code from regions where published_version < version`;
      expect(unpublished).toEqual([]);
      // On a busy machine Redis may miss the reader's deadline. Another reader then reads again.
      return until(readFromRedis, { what: 'a reader gets every region from Redis' });
    },
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  };
}

const guards = ({ broken }: SyncResult) => broken.map(({ guard }) => guard);

const openPriceList = ({ url }: FakeUpstream) =>
  openFleetbook({ PRICE_LIST_URL: `${url}/prices`, PRICE_LIST_PROVIDER: 'Acme' });

it('failing, invalid and silently missing pages never remove a part of the catalogue from readers', async () => {
  await using upstream = await fakeUpstream();
  await using fleetbook = await openFleetbook({ HETZNER_URL: upstream.url });
  const first = { names: ['cx1', 'cx2', 'cx3', 'cx4', 'cx5'] };
  hetzner(upstream, [first, { names: ['cx6'] }], 6);
  await fleetbook.sync();
  const whole = await fleetbook.shown();
  expect(Object.keys(whole)).toHaveLength(6);
  for (const _ of RUNS) {
    hetzner(upstream, [first, { instead: { status: 503 } }], 6);
    await expect(fleetbook.sync()).rejects.toMatchObject({ kind: 'retry' });
    hetzner(upstream, [first, { instead: { json: { error: { code: 'internal' } } } }], 6);
    await expect(fleetbook.sync()).rejects.toMatchObject({ kind: 'invalid' });
    hetzner(upstream, [first], 6);
    const silence = await fleetbook.sync();
    expect(silence.outcome).toBe('held');
    expect(guards(silence)).toEqual(['incomplete']);
  }
  expect(await fleetbook.shown()).toEqual(whole);
});

it('a page that fails twice costs neither the run nor another read of the others, and is logged', async () => {
  await using upstream = await fakeUpstream();
  const lines: { level: number; msg: string; sourceId?: string; repeatedInRun?: number }[] = [];
  const logger = pino({ level: 'warn' }, { write: (line: string) => lines.push(JSON.parse(line)) });
  const options = { requestRetries: RETRIES_AT_ONCE, logger };
  await using fleetbook = await openFleetbook(
    { HETZNER_URL: upstream.url, HETZNER_TOKEN: 'secret' },
    options,
  );
  upstream.expect(
    { path: '/v1/server_types', query: { page: '2', per_page: '50' }, times: 2 },
    { status: 503, raw: 'secret' },
  );
  hetzner(upstream, [{ names: ['cx1'] }, { names: ['cx2'] }], 2);
  expect(await fleetbook.sync()).toMatchObject({ outcome: 'changed', counts: { added: 2 } });
  expect(upstream.received.map(({ path, query }) => `${path} ${query.page}`)).toEqual([
    '/v1/locations 1',
    '/v1/server_types 1',
    ...['/v1/server_types 2', '/v1/server_types 2', '/v1/server_types 2'],
    '/v1/pricing undefined',
  ]);
  const retryLines = lines.filter(({ msg }) => msg.includes('retried in'));
  expect(retryLines).toMatchObject([1, 2].map((repeatedInRun) => ({ sourceId: 'hetzner', repeatedInRun })));
  expect(retryLines[0]?.msg).toMatch(/\/v1\/server_types answers 503; the request is retried in 0\.0 s$/);
  expect(JSON.stringify(lines)).not.toMatch(/secret|per_page/);
});

it('an empty answer never means that everything is gone, however often it is repeated', async () => {
  await using upstream = await fakeUpstream();
  await using fleetbook = await openFleetbook({ HETZNER_URL: upstream.url });
  hetzner(upstream, [{ names: ['cx1', 'cx2'] }], 2);
  await fleetbook.sync();
  const whole = await fleetbook.shown();
  expect(Object.keys(whole)).toEqual(['fsn1/cx1', 'fsn1/cx2']);
  for (const _ of RUNS) {
    hetzner(upstream, [{ names: [] }], 0);
    await expect(fleetbook.sync()).rejects.toMatchObject({
      kind: 'invalid',
      message: expect.stringContaining('"all gone"'),
    });
    hetzner(upstream, [{ instead: { json: {} } }], 0);
    await expect(fleetbook.sync()).rejects.toMatchObject({ kind: 'invalid' });
  }
  expect(await fleetbook.shown()).toEqual(whole);
});

it('an unreachable zone keeps its machines, and the other zones are updated', async () => {
  await using upstream = await fakeUpstream();
  await using fleetbook = await openFleetbook({ SCALEWAY_URL: upstream.url });
  // In a new database too.
  scaleway(upstream, {}, { 'pl-waw-3': { status: 503 } });
  expect(await fleetbook.sync()).toMatchObject({ outcome: 'changed', counts: { added: 8, rejected: 1 } });
  scaleway(upstream);
  expect(await fleetbook.sync()).toMatchObject({ counts: { added: 1, rejected: 0 } });
  const first = await fleetbook.shown();
  expect(Object.keys(first)).toEqual(ZONES.map((zone) => `${zone}/DEV1-M`).sort());
  for (const run of RUNS) {
    // The duration in its reason does not matter.
    const away = { status: 503, headers: { 'retry-after': '86400' } };
    scaleway(upstream, { 'fr-par-1': 0.06 + run * 0.006 }, { 'fr-par-2': away });
    const result = await fleetbook.sync();
    expect(result).toMatchObject({ outcome: 'changed', counts: { changed: 1, retired: 0, rejected: 1 } });
    const moved = { ...first['fr-par-1/DEV1-M'], price: (10 + run) / 10_000 };
    expect(await fleetbook.shown()).toEqual({ ...first, 'fr-par-1/DEV1-M': moved });
  }
});

it('a removed zone is retired like any machine, a new one is added, and many at once are held', async () => {
  await using upstream = await fakeUpstream();
  await using fleetbook = await openFleetbook({ SCALEWAY_URL: upstream.url });
  scaleway(upstream);
  await fleetbook.sync();
  const moved = [...ZONES.slice(1), 'it-mil-1'];
  scaleway(upstream, {}, {}, moved);
  expect(await fleetbook.sync()).toMatchObject({ outcome: 'changed', counts: { added: 1, retired: 0 } });
  scaleway(upstream, {}, {}, moved);
  await fleetbook.sync();
  scaleway(upstream, {}, {}, moved);
  expect(await fleetbook.sync()).toMatchObject({ outcome: 'changed', counts: { retired: 1 } });
  const shown = await fleetbook.shown();
  expect(Object.keys(shown)).toEqual(moved.map((zone) => `${zone}/DEV1-M`).sort());
  scaleway(upstream, {}, {}, moved.slice(4));
  expect(await fleetbook.sync()).toMatchObject({ outcome: 'held' });
  expect(await fleetbook.shown()).toEqual(shown);
});

it('a file with repeated rows adds nothing, and a single repeated row keeps its last good values', async () => {
  await using upstream = await fakeUpstream();
  await using fleetbook = await openPriceList(upstream);
  priceList(upstream);
  await fleetbook.sync();
  const before = await fleetbook.shown();
  priceList(upstream, (row) => [row, { ...row, price: 0.09 }]);
  const doubled = await fleetbook.sync();
  expect(doubled.outcome).toBe('held');
  expect(guards(doubled)).toContain('duplicates');
  expect(await fleetbook.shown()).toEqual(before);

  priceList(upstream, (row) => (row.name === 'm1' ? [row, { ...row, price: 0.09 }] : row));
  expect(await fleetbook.sync()).toMatchObject({ outcome: 'unchanged', counts: { seen: 7, rejected: 2 } });
  const others: Record<string, object> = { m1: { price: 0.09 }, m2: { price: 0.066 } };
  priceList(upstream, (row) => [...(row.name === 'm1' ? [row] : []), { ...row, ...others[row.name] }]);
  expect(await fleetbook.sync()).toMatchObject({ outcome: 'changed', counts: { changed: 1, rejected: 2 } });
  expect(await fleetbook.shown()).toEqual({ ...before, 'dc1/m2': { ...before['dc1/m2'], price: 0.0011 } });
});

it('a price in cents is read in cents, and neither one nor all of them reach readers in whole units', async () => {
  await using upstream = await fakeUpstream();
  await using fleetbook = await openFleetbook({ UPCLOUD_URL: upstream.url });
  const cents = { p1: 6, p2: 6.6, p3: 7.2, p4: 7.8, p5: 8.4, p6: 9 };
  upcloud(upstream, cents);
  await fleetbook.sync();
  const before = await fleetbook.shown();
  expect(before).toMatchObject({ 'fi-hel1/p1': { price: 0.001 }, 'fi-hel1/p6': { price: 0.0015 } });
  for (const factor of [100, 0.01]) {
    upcloud(upstream, { ...cents, p3: cents.p3 * factor });
    const one = await fleetbook.sync();
    expect(one).toMatchObject({
      outcome: 'unchanged',
      rejected: ['p3@fi-hel1', 'p3@fi-hel1/monthly_cap'].map((key) => ({ key, code: 'price_jump' })),
    });
    upcloud(
      upstream,
      Object.fromEntries(Object.entries(cents).map(([name, price]) => [name, price * factor])),
    );
    const all = await fleetbook.sync();
    expect(all.outcome).toBe('held');
    // Prices, and their monthly caps.
    expect(guards(all)).toEqual(['repriced', 'price_ratio', 'price_ratio']);
  }
  expect(await fleetbook.shown()).toEqual(before);
});

it.each<[string, Pick<Row, 'ram' | 'ram_unit'>, string]>([
  ['thousands for 1024s', { ram: 4000, ram_unit: 'MiB' }, 'memory × 0.9766'],
  ['kilobytes for megabytes', { ram: 4096 * 1024, ram_unit: 'MiB' }, 'memory × 1024'],
  ['GB for GiB', { ram: 4, ram_unit: 'GB' }, 'another size'],
])('a wrong memory unit, %s, is held before readers get another size', async (_, wrongSize, expected) => {
  await using upstream = await fakeUpstream();
  await using fleetbook = await openPriceList(upstream);
  priceList(upstream, (row) => ({ ...row, ram: 4096, ram_unit: 'MiB' }));
  await fleetbook.sync();
  const before = await fleetbook.shown();
  expect(before).toMatchObject({ 'dc1/m1': { ram: 4, ram_unit: 'Binary' } });
  priceList(upstream, (row) => ({ ...row, ...wrongSize }));
  const { outcome, broken } = await fleetbook.sync();
  expect(outcome).toBe('held');
  const flip = broken.find(({ guard }) => guard === 'unit_flip');
  expect(flip?.detail).toContain(expected);
  expect(await fleetbook.shown()).toEqual(before);
});

it('one bad machine is quarantined with its reason for weeks, and the others are updated', async () => {
  await using upstream = await fakeUpstream();
  await using fleetbook = await openPriceList(upstream);
  const aside = () => fleetbook.sql`select row_key, reason from quarantined_rows`;
  priceList(upstream);
  await fleetbook.sync();
  const before = await fleetbook.shown();
  for (const run of RUNS) {
    const now: Record<string, object> = {
      m1: { price: 0.06 + run * 0.006 },
      m3: { price: 0.09, ram: 'plenty' },
    };
    priceList(upstream, (row) => ({ ...row, ...now[row.name] }));
    expect(await fleetbook.sync()).toMatchObject({ outcome: 'changed', counts: { changed: 1, rejected: 1 } });
    const moved = { ...before['dc1/m1'], price: (10 + run) / 10_000 };
    expect(await fleetbook.shown()).toEqual({ ...before, 'dc1/m1': moved });
    expect(await aside()).toEqual([{ row_key: 'm3@dc1', reason: expect.stringContaining('ram') }]);
  }
  priceList(upstream, (row) => (row.name === 'm3' ? { ...row, price: 0.09 } : row));
  expect(await fleetbook.sync()).toMatchObject({ outcome: 'changed', counts: { changed: 2, rejected: 0 } });
  const repaired = { ...before['dc1/m3'], price: 0.0015 };
  expect(await fleetbook.shown()).toEqual({ ...before, 'dc1/m3': repaired });
  expect(await aside()).toEqual([]);
});

it('a price of zero is never published, and a list of only zeros is held', async () => {
  await using upstream = await fakeUpstream();
  await using fleetbook = await openPriceList(upstream);
  // From the start, and if the amount rounds to zero.
  const costs = (row: Row) => ({ m1: '0.00', m2: '0.0000000000000000001' })[row.name] ?? row.price;
  priceList(upstream, (row) => ({ ...row, price: costs(row) }));
  expect(await fleetbook.sync()).toMatchObject({ outcome: 'changed', counts: { added: 6 } });
  const shown = await fleetbook.shown();
  expect(Object.keys(shown)).toEqual(['dc1/m3', 'dc1/m4', 'dc1/m5', 'dc1/m6']);
  priceList(upstream, (row) => ({ ...row, price: row.name === 'm3' ? 0 : costs(row) }));
  expect(await fleetbook.sync()).toMatchObject({ outcome: 'changed' });
  const { 'dc1/m3': _, ...rest } = shown;
  expect(await fleetbook.shown()).toEqual(rest);
  expect(
    await fleetbook.sql`select name, excluded_reason from machines where excluded_reason is not null order by name`,
  ).toEqual(['m1', 'm2', 'm3'].map((name) => ({ name, excluded_reason: 'zero_price' })));
  priceList(upstream, (row) => ({ ...row, price: 0 }));
  const zeros = await fleetbook.sync();
  expect(zeros.outcome).toBe('held');
  expect(guards(zeros)).toContain('removed');
  expect(await fleetbook.shown()).toEqual(rest);
});

it('a provider that does not answer delays no other, and runs once it does', async () => {
  await using hanging = await fakeUpstream();
  await using answering = await fakeUpstream();
  await using fleetbook = await openFleetbook({
    HETZNER_URL: hanging.url,
    HETZNER_SCHEDULE: YEARLY,
    UPCLOUD_URL: answering.url,
    UPCLOUD_SCHEDULE: YEARLY,
  });
  const released = Promise.withResolvers<void>();
  const { arrived } = hetzner(hanging, [{ names: ['cx1'] }], 1, released.promise);
  upcloud(answering, { p1: 6 });
  await using worker = await startWorker(fleetbook.config, silent, { closeWithinMs: 1000 });
  await arrived;
  const ended = async () => (await worker.queues.sync.getCompleted()).map(({ data }) => data.sourceId);
  await until(async () => (await ended()).includes('upcloud'));
  expect(Object.keys(await fleetbook.shown())).toEqual(['fi-hel1/p1']);
  expect(await worker.queues.sync.getActive()).toMatchObject([{ data: { sourceId: 'hetzner' } }]);
  released.resolve();
  await until(async () => (await ended()).includes('hetzner'));
  expect(Object.keys(await fleetbook.shown())).toEqual(['fsn1/cx1', 'fi-hel1/p1']);
});
