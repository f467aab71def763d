import { Registry } from 'prom-client';
import { describe, expect, it } from 'vitest';
import { openStore } from '../../src/db/connection/connect.ts';
import { addSearchSeries } from '../../src/features/search/routes.ts';
import { exportInSlices, exportMetrics, mergeMetrics, metricsInSlices } from '../../src/ops/merge-metrics.ts';
import { apiMetrics, workerMetrics } from '../../src/ops/metrics.ts';
import { addSourceGauges, type SourceFacts } from '../../src/ops/source-gauges.ts';
import { disableSource } from '../../src/sync/runs/disabled.ts';
import { registerSource } from '../../src/sync/runs/run.ts';
import { createDatabase } from '../support/postgres.ts';

/** Returns the value of one series; undefined without such a line. */
function series(text: string, name: string, labels: Record<string, string> = {}): number | undefined {
  for (const line of text.split('\n')) {
    const match = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line);
    if (match?.[1] !== name) continue;
    if (Object.entries(labels).every(([key, value]) => match[2]?.includes(`${key}="${value}"`)))
      return Number(match[3]);
  }
  return undefined;
}

const request = { route: '/v1/clusters', method: 'GET', status: 200, seconds: 0.002, tier: 'memory' };

describe('the metrics of an API', () => {
  it('count requests, their time, and the tier that answered', async () => {
    const { registry, observe } = apiMetrics();
    observe(request);
    observe({ ...request, seconds: 0.02 });
    observe({ ...request, status: 401, tier: undefined });
    const text = await registry.metrics();
    const labels = { route: '/v1/clusters', method: 'GET' };
    expect(series(text, 'fleetbook_http_requests_total', { ...labels, status: '200' })).toBe(2);
    expect(series(text, 'fleetbook_http_requests_total', { ...labels, status: '401' })).toBe(1);
    expect(series(text, 'fleetbook_reads_total', { tier: 'memory' })).toBe(2);
    expect(series(text, 'fleetbook_http_request_duration_seconds_count', { route: '/v1/clusters' })).toBe(3);
    expect(series(text, 'fleetbook_http_request_duration_seconds_sum')).toBeCloseTo(0.024);
    expect(series(text, 'process_cpu_seconds_total', { process: 'api' })).toBeGreaterThan(0);
  });

  it('have separate durations of streams and downloads', async () => {
    const { registry, observe } = apiMetrics();
    observe(request);
    observe({ ...request, seconds: 25, lasts: true });
    const text = await registry.metrics();
    expect(series(text, 'fleetbook_http_requests_total')).toBe(2);
    expect(series(text, 'fleetbook_http_request_duration_seconds_count')).toBe(1);
    expect(series(text, 'fleetbook_http_request_duration_seconds_sum')).toBeLessThan(1);
    expect(series(text, 'fleetbook_http_lasting_request_duration_seconds_sum')).toBe(25);
    const bucket = 'fleetbook_http_lasting_request_duration_seconds_bucket';
    expect([15, 30].map((le) => series(text, bucket, { le: String(le) }))).toEqual([0, 1]);
  });

  it('include the size of the search index, and the reason for its absence', async () => {
    const counts = { machines: 3, bytes: 100, limitBytes: 5000, failures: { 'too-large': 0, failed: 0 } };
    const { registry } = apiMetrics();
    addSearchSeries(registry, () => counts);
    const value = async (name: string, labels = {}) => series(await registry.metrics(), name, labels);
    expect(await value('fleetbook_search_machines')).toBe(3);
    expect(await value('fleetbook_search_index_bytes')).toBe(100);
    expect(await value('fleetbook_search_index_limit_bytes')).toBe(5000);
    // An alert on the increase needs the series before the first event.
    expect(await value('fleetbook_search_failures_total', { reason: 'too-large' })).toBe(0);
    counts.failures['too-large'] += 1;
    expect(await value('fleetbook_search_failures_total', { reason: 'too-large' })).toBe(1);
  });

  it('count rare methods together', async () => {
    const { registry, observe } = apiMetrics();
    for (const method of ['PROPFIND', 'MKCOL']) observe({ ...request, method, status: 405 });
    expect(series(await registry.metrics(), 'fleetbook_http_requests_total', { method: 'other' })).toBe(2);
  });

  it('are the same in slices as in one page', async () => {
    const { registry, observe } = apiMetrics();
    for (let route = 0; route < 40; route++)
      for (const lasts of [false, true]) observe({ ...request, route: `/v1/${route}`, lasts });
    const linesOf = (text: string) => text.split('\n').filter((line) => line.includes('fleetbook_'));
    const lines = linesOf(await registry.metrics());
    expect(lines.length).toBeGreaterThan(1000);
    expect(linesOf(await metricsInSlices(registry))).toEqual(lines);
    const merged = linesOf(await mergeMetrics([await exportMetrics(registry)]));
    expect(linesOf(await mergeMetrics([await exportInSlices(registry)]))).toEqual(merged);
  });

  it('are separate for each registry', async () => {
    const [one, other] = [apiMetrics(), apiMetrics()];
    one.observe(request);
    expect(
      series(await other.registry.metrics(), 'fleetbook_reads_total', { tier: 'memory' }),
    ).toBeUndefined();
  });
});

describe('the metrics of a worker', () => {
  it('include runs, publishing and the state of each source in the database', async () => {
    await using database = await createDatabase();
    await using store = openStore({ url: database.url, role: 'worker', connections: 2 });
    await registerSource(store.db, { id: 'hetzner', kind: 'catalogue', adapter: 'hetzner' });
    await registerSource(store.db, { id: 'never', kind: 'catalogue', adapter: 'hetzner' });
    await registerSource(store.db, { id: 'gone', kind: 'catalogue', adapter: 'hetzner' });
    await registerSource(store.db, { id: 'retired', kind: 'catalogue', adapter: 'hetzner' });
    await store.sql`update sources set verified_at = now() - interval '1 hour' where id = 'hetzner'`;
    await store.sql`update sources set registered_at = now() - interval '2 hours' where id = 'never'`;
    await store.sql`update sources set retired_at = now() where id = 'retired'`;
    await disableSource(store.db, 'never', { by: 'ada', how: 'cli', address: 'ada', reason: undefined });
    await store.sql`
      insert into quarantined_rows (source_id, row_key, reason, code)
      values ('hetzner', 'a', 'ram is missing', 'invalid'), ('hetzner', 'b', 'cpu is missing', 'invalid'),
        ('hetzner', 'c', 'reported 2 times', 'duplicate')`;
    await store.sql`
      with acme as (insert into providers (id, name) values (77, 'Acme') returning id),
      a as (insert into regions (provider_id, code, name) select id, 'a', 'A' from acme returning id)
      insert into machines (region_id, name, cpu, ram, ram_unit, excluded_reason, source_id)
      select id, 'free', 2, 4, 'Binary', 'zero_price', 'hetzner' from a`;
    await store.sql`
      insert into sync_runs (source_id, fence, outcome) values ('hetzner', 1, 'failed'), ('hetzner', 2, 'held'),
        ('hetzner', 3, 'failed'), ('hetzner', 4, 'interrupted'), ('never', 1, 'failed'), ('gone', 1, 'changed')`;
    await store.sql`
      insert into held_batches (source_id, run_id, broken, pattern, worst, held_since)
      select source_id, id, '[]', 'all prices × 100: a unit?', '{"rows": [], "total": 0}', now() - interval '30 minutes' from sync_runs where outcome = 'held'`;
    await store.sql`update regions set published_version = version - 1 where code = 'a'`;
    await store.sql`update lineage set providers_published_version = providers_version`;
    const { registry, observe, published } = workerMetrics(store.db, [
      { id: 'hetzner', maxAge: 10_800 },
      { id: 'never', maxAge: 60 },
    ]);
    observe('hetzner', 'changed', 3);
    published('published', 12, 0.2);
    published('failed', 0, 1);
    const text = await registry.metrics();
    expect(series(text, 'fleetbook_sync_runs_total', { source: 'hetzner', outcome: 'changed' })).toBe(1);
    expect(series(text, 'fleetbook_sync_duration_seconds_sum', { source: 'hetzner' })).toBe(3);
    expect(series(text, 'fleetbook_published_documents_total')).toBe(12);
    expect(series(text, 'fleetbook_publish_duration_seconds_count', { outcome: 'failed' })).toBe(1);
    const age = series(text, 'fleetbook_source_age_seconds', { source: 'hetzner' });
    expect(age).toBeGreaterThanOrEqual(3600);
    expect(age).toBeLessThan(3660);
    const neverAge = series(text, 'fleetbook_source_age_seconds', { source: 'never' });
    expect(neverAge).toBeGreaterThanOrEqual(7200);
    expect(neverAge).toBeLessThan(7260);
    const never = (source: string) => series(text, 'fleetbook_source_never_succeeded', { source });
    expect([never('hetzner'), never('never'), never('retired')]).toEqual([0, 1, undefined]);
    const disabled = (source: string) => series(text, 'fleetbook_source_disabled', { source });
    expect([disabled('hetzner'), disabled('never')]).toEqual([0, 1]);
    const configured = (source: string) => series(text, 'fleetbook_source_configured', { source });
    expect([configured('hetzner'), configured('never'), configured('gone')]).toEqual([1, 1, 0]);
    const ofSource = (name: string, source: string) => series(text, `fleetbook_source_${name}`, { source });
    expect([ofSource('held_batches', 'hetzner'), ofSource('held_batches', 'gone')]).toEqual([1, 0]);
    const held = ofSource('held_seconds', 'hetzner');
    expect(held).toBeGreaterThanOrEqual(1800);
    expect(held).toBeLessThan(1860);
    expect(ofSource('held_seconds', 'gone')).toBe(0);
    const failed = ['hetzner', 'never', 'gone', 'retired'].map((source) => ofSource('failed_runs', source));
    expect(failed).toEqual([2, 1, 0, undefined]);
    const objective = (source: string) => ofSource('freshness_objective_seconds', source);
    expect([objective('hetzner'), objective('never'), objective('gone')]).toEqual([10_800, 60, undefined]);
    expect([ofSource('known', 'hetzner'), ofSource('published', 'hetzner')]).toEqual([1, 0]);
    const dirty = (kind: string) => series(text, 'fleetbook_publication_dirty_documents', { kind });
    expect([dirty('region'), dirty('clusters'), dirty('token'), dirty('providers')]).toEqual([1, 0, 0, 0]);
    expect(series(text, 'fleetbook_database_reachable')).toBe(1);
    const quarantined = (reason: string) =>
      series(text, 'fleetbook_source_quarantined_by_reason', { source: 'hetzner', reason });
    expect([quarantined('invalid'), quarantined('duplicate'), quarantined('price_jump')]).toEqual([
      2,
      1,
      undefined,
    ]);
    const free = { source: 'hetzner', reason: 'zero_price' };
    expect(series(text, 'fleetbook_source_excluded_by_reason', free)).toBe(1);
  });
});

describe('the gauges of sources', () => {
  const facts: SourceFacts = {
    id: 'a',
    verifiedAt: '2026-01-01T00:00:00Z',
    registeredAt: '2025-01-01T00:00:00Z',
    retiredAt: null,
    disabled: null,
    paused: null,
    regions: [],
    known: 9,
    published: 7,
    quarantined: 2,
    held: 1,
    heldSince: null,
    failedRuns: 0,
  };

  it('include the age of the oldest regions; that of an unread one starts when it was found unreadable', async () => {
    const read = { verifiedAt: '2026-01-01T00:00:00Z', unreadSince: null };
    let regions: SourceFacts['regions'] = [
      { code: 'x', ...read },
      { code: 'y', verifiedAt: '2025-12-31T23:59:00Z', unreadSince: '2025-12-31T23:59:30Z' },
      { code: 'z', verifiedAt: null, unreadSince: '2025-12-31T23:58:00Z' },
    ];
    const registry = new Registry();
    const now = () => Date.parse('2026-01-01T00:01:00Z');
    addSourceGauges(registry, async () => [{ ...facts, regions }], { now });
    const text = await registry.metrics();
    const age = (region: string) => series(text, 'fleetbook_region_age_seconds', { source: 'a', region });
    expect([age('x'), age('y'), age('z')]).toEqual([60, 120, 180]);
    expect(series(text, 'fleetbook_source_unread_regions', { source: 'a' })).toBe(2);
    regions = [...regions, ...Array.from({ length: 2000 }, (_, i) => ({ code: `r${i}`, ...read }))];
    const many = await registry.metrics();
    expect(many.match(/^fleetbook_region_age_seconds\{/gm)).toHaveLength(1000);
    expect(series(many, 'fleetbook_region_age_seconds', { source: 'a', region: 'z' })).toBe(180);
  });

  it('keep ageing and do not delay a scrape while the database does not answer', async () => {
    let now = Date.parse('2026-01-01T00:01:00Z');
    let read: () => Promise<SourceFacts[]> = async () => [facts];
    const registry = new Registry();
    addSourceGauges(registry, () => read(), { now: () => now, waitMs: 20 });
    expect(series(await registry.metrics(), 'fleetbook_source_age_seconds', { source: 'a' })).toBe(60);
    for (const away of [() => Promise.reject(new Error('away')), () => new Promise<never>(() => {})]) {
      read = away;
      now += 60_000;
      const text = await registry.metrics();
      expect(series(text, 'fleetbook_source_age_seconds', { source: 'a' })).toBe(
        (now - Date.parse('2026-01-01T00:00:00Z')) / 1000,
      );
      expect(series(text, 'fleetbook_source_published', { source: 'a' })).toBe(7);
      expect(series(text, 'fleetbook_database_reachable')).toBe(0);
    }
  });

  it('need one read for each scrape', async () => {
    let reads = 0;
    const registry = new Registry();
    addSourceGauges(registry, async () => {
      reads += 1;
      return [facts];
    });
    await registry.metrics();
    expect(reads).toBe(1);
  });

  it('omit a removed source', async () => {
    let sources = [facts];
    const registry = new Registry();
    addSourceGauges(registry, async () => sources);
    await registry.metrics();
    sources = [];
    expect(series(await registry.metrics(), 'fleetbook_source_published')).toBeUndefined();
  });
});

describe('the metrics of several processes', () => {
  it('are on one page: counters are added up, gauges of the database are not', async () => {
    const apis = [apiMetrics(), apiMetrics()];
    for (const api of apis) api.observe(request);
    const facts: SourceFacts = {
      id: 'a',
      verifiedAt: null,
      registeredAt: '2026-01-01T00:00:00Z',
      retiredAt: null,
      disabled: null,
      paused: null,
      regions: [],
      known: 9,
      published: 7,
      quarantined: 0,
      held: 1,
      heldSince: null,
      failedRuns: 0,
    };
    const workers = [new Registry(), new Registry()];
    for (const worker of workers) addSourceGauges(worker, async () => [facts]);
    const registries = [...apis.map(({ registry }) => registry), ...workers];
    const text = await mergeMetrics(await Promise.all(registries.map(exportMetrics)));
    expect(series(text, 'fleetbook_http_requests_total', { status: '200', process: 'api' })).toBe(2);
    expect(series(text, 'fleetbook_http_request_duration_seconds_bucket', { le: '+Inf' })).toBe(2);
    expect(series(text, 'fleetbook_source_published', { source: 'a' })).toBe(7);
    expect(series(text, 'fleetbook_source_held_batches', { source: 'a' })).toBe(1);
    expect(text.match(/^# TYPE fleetbook_http_requests_total counter$/gm)).toHaveLength(1);
  });

  it('omit a process without an answer or with an invalid one', async () => {
    const { registry, observe } = apiMetrics();
    observe(request);
    const text = await mergeMetrics([
      undefined,
      null,
      'late',
      {},
      [null, 1, {}],
      await exportMetrics(registry),
    ]);
    expect(series(text, 'fleetbook_reads_total', { tier: 'memory' })).toBe(1);
    expect(await mergeMetrics([])).toBe('\n');
  });

  it('are equal after the transfer from another process, as JSON', async () => {
    const { registry, observe } = apiMetrics();
    observe({ ...request, tier: 'redis' });
    const text = await mergeMetrics([JSON.parse(JSON.stringify(await exportMetrics(registry)))]);
    expect(series(text, 'fleetbook_reads_total', { tier: 'redis', process: 'api' })).toBe(1);
    expect(text).not.toMatch(/ (null|undefined|NaN)$/m);
  });
});
