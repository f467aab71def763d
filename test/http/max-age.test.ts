/** `Cache-Control: max-age` of requests: old data is refused on every path to an answer. */
import { pino } from 'pino';
import { beforeEach, describe, expect, it } from 'vitest';
import { nextRun, sourceFinder } from '../../src/app/find-source.ts';
import { createToken } from '../../src/db/tokens.ts';
import { SCOPES } from '../../src/domain/scope.ts';
import type { ExportReader } from '../../src/features/exports/routes.ts';
import { exportsApi } from '../../src/features/exports/routes.ts';
import type { StoredExport } from '../../src/features/exports/tables.ts';
import { buildApp } from '../../src/http/app.ts';
import { isYoungEnough } from '../../src/http/protocol/max-age.ts';
import { SCHEDULES_KEY } from '../../src/snapshot/document/keys.ts';
import { disableSource, enableSource } from '../../src/sync/runs/disabled.ts';
import { storeSchedules } from '../../workers/schedule.ts';
import { addMachine, addPlan, addProvider, addRegion, addSource, verify } from '../snapshot/rows.ts';
import { sceneForEachTest } from '../snapshot/scene.ts';
import { listen, PATIENT } from './harness.ts';

const OPERATOR = { by: 'ada@desk', how: 'cli', address: 'ada@desk', reason: 'audit' } as const;
const silent = pino({ level: 'silent' });

describe('the bound', () => {
  const AS_OF = '2026-03-01T04:17:02.500Z';
  const later = (ms: number) => () => Date.parse(AS_OF) + ms;

  it.each([
    ['max-age=60', 60_000, true],
    ['max-age=60', 60_001, false],
    ['max-age=0', 0, true],
    ['max-age=0', 1, false],
    ['MAX-AGE=60', 60_001, false],
    ['max-age="60"', 60_000, true],
    ['max-age="60"', 60_001, false],
    ['no-cache, max-age=60', 60_001, false],
    ['max-age=90, max-age=60', 60_001, false],
    ['max-age=60, max-age=90', 60_001, false],
    ['max-age=99999999999999999999', 1e12, true],
    ['no-cache', 1e12, true],
    ['min-fresh=60, max-stale, only-if-cached', 1e12, true],
    ['', 1e12, true],
    ['x="max-age=1, max-age=2"', 1e12, true],
    ['x="\\", max-age=1", max-age=2', 1e12, false],
    ['s-maxage=1, x-max-age=1', 1e12, true],
    ['max-age=60', -5000, true],
  ])('%s with data that is %d ms old: accepted %s', (cacheControl, age, isAccepted) => {
    expect(isYoungEnough({ 'cache-control': cacheControl }, AS_OF, later(age))).toBe(isAccepted);
  });

  it('accepts everything without the header, and nothing of unknown age with it', () => {
    expect(isYoungEnough({}, undefined, later(0))).toBe(true);
    expect(isYoungEnough({ 'cache-control': 'no-cache' }, undefined, later(0))).toBe(true);
    expect(isYoungEnough({ 'cache-control': 'max-age=60' }, undefined, later(0))).toBe(false);
  });

  it('does not exist for max-age=0 of a browser, which reloads a page', () => {
    const browser = { 'cache-control': 'max-age=0', 'sec-fetch-site': 'same-origin' };
    expect(isYoungEnough(browser, AS_OF, later(1e9))).toBe(true);
    expect(isYoungEnough({ ...browser, 'cache-control': 'max-age=1' }, AS_OF, later(1e9))).toBe(false);
  });
});

describe('the next run', () => {
  it.each([
    // The slot of 04:17 was read.
    ['2026-03-01T04:17:03Z', '2026-03-01T06:17:00Z', '2026-03-01T10:17:00Z', 14_400],
    // The slot of 10:17 is overdue: its run may end at any time.
    ['2026-03-01T04:17:03Z', '2026-03-01T10:18:00Z', '2026-03-01T16:17:00Z', 60],
    ['2026-03-01T04:17:03Z', '2026-03-01T16:16:59.500Z', '2026-03-01T16:17:00Z', 1],
  ])('after %s, at %s, is due at %s', async (asOf, now, dueAt, retryAfterSeconds) => {
    expect(await nextRun('17 4,10,16,22 * * *', new Date(asOf), new Date(now))).toEqual({
      dueAt,
      retryAfterSeconds,
    });
  });
});

describe('an answer', () => {
  const scene = sceneForEachTest();
  beforeEach(() => addPlan(scene.sql, scene.sample.region));

  const FILE: StoredExport = {
    id: 1,
    version: 'v',
    file: 'machines.csv',
    coding: 'identity',
    currency: 'USD',
    createdAt: '2026-03-01T04:17:31.220418Z',
    rows: 1,
    bytes: 1,
    hash: 'h',
    chunkBytes: 1,
  };
  const EXPORTS: ExportReader = {
    current: async () => [FILE],
    async *read() {
      yield Buffer.from('x');
    },
  };

  /** Serves data that is `age` seconds old; clusters are a millisecond younger. @param now of the search for the next run */
  async function serve(age: number, hasCache = true, now?: string) {
    const at = Date.now() - age * 1000;
    const times = [new Date(at).toISOString(), new Date(at + 1).toISOString()];
    await verify(scene.sql, 'cloud', times[0] ?? '');
    await verify(scene.sql, 'plane', times[1] ?? '');
    const { token } = await createToken(scene.store.db, {
      organizationId: scene.sample.a,
      scopes: [...SCOPES],
    });
    await scene.publisher.publishDirty();
    const reader = await scene.linkedReader();
    const app = buildApp({
      ...reader,
      features: async () => [...(await reader.features()), exportsApi(EXPORTS, reader.market)],
      ...(!hasCache && { responses: undefined }),
      findSource: sourceFinder(reader.documents, reader.link, () => (now ? Date.parse(now) : Date.now())),
      readiness: async () => ({ ready: true, checks: {} }),
      logger: false,
      version: '1.2.3',
      limits: PATIENT,
    });
    const url = `http://127.0.0.1:${await listen(app)}`;
    return {
      url,
      times,
      reader,
      get: (path: string, headers: Record<string, string> = {}, method = 'GET') =>
        fetch(url + path, { method, headers: { authorization: `Bearer ${token}`, ...headers } }),
      [Symbol.asyncDispose]: () => app.close(),
    };
  }

  const targets = () => {
    const { provider, region, small } = scene.sample;
    return [
      ['/v1/providers', '/v1/providers'],
      ['/v1/machines', `/v1/machines?provider=${provider}&region=${region}`],
      ['/v1/machines/{id}', `/v1/machines/${small}`],
      ['/v1/machines/{id}/prices', `/v1/machines/${small}/prices`],
      ['/v1/machines/{id}/terms', `/v1/machines/${small}/terms`],
      ['/v1/regions/{id}/prices', `/v1/regions/${region}/prices`],
      ['/v1/machines/{id}/availability', `/v1/machines/${small}/availability`],
      ['/v1/machines/first-available', `/v1/machines/first-available?ids=${small}`],
      ['/v1/databases', '/v1/databases'],
      ['/v1/databases/{id}', '/v1/databases/1'],
      ['/v1/machines/search', '/v1/machines/search'],
      ['/v1/machines/recommend', '/v1/machines/recommend?cpu=1&ram=1'],
      ['/v1/clusters', '/v1/clusters'],
      ['/v1/clusters/{slug}', '/v1/clusters/cluster-test'],
      ['/v1/clusters/{slug}/details', '/v1/clusters/cluster-test/details'],
      ['/v1/lifecycle', '/v1/lifecycle'],
      ['/v1/clusters/{slug}/cost', '/v1/clusters/cluster-test/cost'],
      ['/v1/clusters/{slug}/cost/history', '/v1/clusters/cluster-test/cost/history'],
      ['/v1/clusters/{slug}/alternatives', '/v1/clusters/cluster-test/alternatives'],
      ['/v1/costs', '/v1/costs'],
      ['/v1/exports/opencost.csv', '/v1/exports/opencost.csv?provider=2'],
      ['/v1/exports/karpenter.yaml', '/v1/exports/karpenter.yaml?provider=aws&region=here'],
    ] as const;
  };
  /** Their data has no time: the age is unknown. */
  const TIMELESS = ['/v1/changes', '/v1/exports'];

  it('that is too old is 503 with its age, for every operation, with and without the response cache', async () => {
    const region = await addRegion(scene.sql, await addProvider(scene.sql, 2, 'AWS'), 'here');
    await addMachine(scene.sql, region, { name: 'm7i.large', source: 'cloud' });
    for (const hasCache of [true, false]) {
      await using api = await serve(100, hasCache);
      for (const [, target] of targets()) {
        const young = { 'cache-control': 'max-age=1000' };
        const first = await api.get(target);
        const body = await first.text();
        const asOf = first.headers.get('fleetbook-as-of');
        expect([target, first.status]).toEqual([target, 200]);
        expect(api.times).toContain(asOf);
        // The first repetition fills the cache, the next one comes from it.
        for (const headers of [{}, {}, young, { 'cache-control': 'no-cache' }]) {
          const answer = await api.get(target, headers);
          expect([answer.status, await answer.text()]).toEqual([200, body]);
        }
        const etag = first.headers.get('etag') ?? '';
        expect((await api.get(target, { ...young, 'if-none-match': etag })).status).toBe(304);
        for (const headers of [{}, { 'if-none-match': etag }]) {
          const old = await api.get(target, { 'cache-control': 'max-age=99', ...headers });
          expect([target, old.status]).toEqual([target, 503]);
          const problem = (await old.json()) as { readonly age: number; readonly detail: string };
          expect(problem).toMatchObject({ type: 'urn:fleetbook:problem:data-too-old', as_of: asOf });
          expect(problem.age).toBeGreaterThanOrEqual(100);
          expect(problem.detail).toContain(`${problem.age} seconds old, as of ${asOf}`);
          expect(old.headers.get('content-type')).toBe('application/problem+json');
          expect(Number(old.headers.get('retry-after'))).toBeGreaterThan(0);
        }
        const head = await api.get(target, { 'cache-control': 'max-age=99' }, 'HEAD');
        expect([head.status, await head.text()]).toEqual([503, '']);
        expect((await api.get(target, young, 'HEAD')).status).toBe(200);
      }
    }
  });

  it('comes from the response cache with a bound that it meets', async () => {
    await using api = await serve(100);
    for (let i = 0; i < 3; i++) await api.get('/v1/providers');
    const before = api.reader.responses.hits;
    await api.get('/v1/providers', { 'cache-control': 'max-age=1000' });
    await api.get('/v1/providers', { 'cache-control': 'max-age=99' });
    expect(api.reader.responses.hits).toBe(before + 1);
  });

  it('of unknown age is refused with a bound, and each operation documents the header', async () => {
    await using api = await serve(100);
    for (const target of TIMELESS) {
      expect((await api.get(target)).status).toBe(200);
      const answer = await api.get(target, { 'cache-control': 'max-age=1000000' });
      expect([target, answer.status]).toEqual([target, 503]);
      expect(await answer.json()).toMatchObject({ age: null, as_of: null, next_run: null });
    }
    const { paths } = (await (await fetch(`${api.url}/openapi.json`)).json()) as {
      paths: Record<string, { get: { parameters?: { name: string; in: string }[] } }>;
    };
    const documented = Object.keys(paths).filter((path) =>
      paths[path]?.get.parameters?.some(
        ({ name, in: where }) => name === 'Cache-Control' && where === 'header',
      ),
    );
    // A file has no single time.
    const expected = Object.keys(paths).filter(
      (path) => path.startsWith('/v1/') && path !== '/v1/exports/{file}',
    );
    expect(documented).toEqual(expected);
    expect(documented).toEqual(expect.arrayContaining([...targets().map(([path]) => path), ...TIMELESS]));
  });

  it('is a stream of changes, or a file, with any bound', async () => {
    await using api = await serve(100);
    const file = await api.get('/v1/exports/machines.csv', { 'cache-control': 'max-age=0' });
    expect([file.status, await file.text()]).toEqual([200, 'x']);
    const answer = await api.get('/v1/changes', {
      accept: 'text/event-stream',
      'cache-control': 'max-age=0',
    });
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'text/event-stream']);
    await answer.body?.cancel();
  });

  it('to a malformed bound is 400 with the header’s form, and 401 without a token', async () => {
    await using api = await serve(100);
    for (let i = 0; i < 3; i++) await api.get('/v1/providers');
    for (const value of [
      'max-age',
      'max-age=',
      'max-age=-1',
      'max-age=1.5',
      'max-age=1h',
      'max-age=5, max-age=x',
    ]) {
      const answer = await api.get('/v1/providers', { 'cache-control': value });
      expect([value, answer.status]).toEqual([value, 400]);
      expect(await answer.json()).toMatchObject({
        type: 'urn:fleetbook:problem:invalid-parameter',
        parameter: 'Cache-Control',
        detail: expect.stringContaining('max-age=N'),
      });
    }
    const stranger = await fetch(`${api.url}/v1/providers`, { headers: { 'cache-control': 'max-age=0' } });
    expect(stranger.status).toBe(401);
  });

  it('depends on the sources of its rows alone, and names the one that is too old', async () => {
    const { sql, sample } = scene;
    await addSource(sql, 'other', 'catalogue');
    await verify(sql, 'other', new Date(Date.now() - 1_000_000).toISOString());
    const region = await addRegion(sql, await addProvider(sql, 2, 'Other'), 'far');
    // Larger than the machines of the sample, and dearer.
    const machine = await addMachine(sql, region, {
      name: 'huge',
      cpu: 30,
      ram: 100,
      price: '9',
      source: 'other',
    });
    await using api = await serve(100);
    const bounded = async (target: string) => {
      const answer = await api.get(target, { 'cache-control': 'max-age=500' });
      return [target, answer.status, ((await answer.json()) as { source?: string | null }).source];
    };
    for (const target of [
      '/v1/machines/search?limit=1',
      `/v1/machines/search?provider=${sample.provider}`,
      '/v1/machines/search?max_cpu=29',
      `/v1/machines/recommend?cpu=1&ram=1&provider=${sample.provider}`,
      // The provider has no region there. Only its own source could add one.
      `/v1/machines/search?country=JP&provider=${sample.provider}`,
      `/v1/databases?country=JP&provider=${sample.provider}`,
      `/v1/machines/${sample.small}/terms`,
      '/v1/databases',
      '/v1/clusters/cluster-test/alternatives',
      '/v1/costs',
    ])
      expect(await bounded(target)).toEqual([target, 200, undefined]);
    for (const target of [
      '/v1/providers',
      '/v1/machines/search',
      '/v1/machines/search?min_cpu=30',
      // Without a row the answer depends on every source that could have one.
      '/v1/machines/search?min_cpu=31',
      '/v1/machines/recommend?cpu=1&ram=1',
      `/v1/machines/${machine}`,
    ])
      expect(await bounded(target)).toEqual([target, 503, 'other']);
    const problem = await api.get(`/v1/machines/${machine}`, { 'cache-control': 'max-age=500' });
    expect(((await problem.json()) as { detail: string }).detail).toMatch(
      /^The data of the source other is \d+ seconds old, as of /,
    );
    // The source of clusters may be that of another organization.
    const clusters = await api.get('/v1/clusters', { 'cache-control': 'max-age=1' });
    expect([clusters.status, await clusters.json()]).toMatchObject([503, { source: null }]);
  });

  it('names the next run of its source, unless the source is disabled', async () => {
    const sources = [
      { id: 'cloud', schedule: '17 */6 * * *' },
      { id: 'plane', schedule: '* * * * *' },
    ];
    const store = () => storeSchedules(scene.store.db, scene.cache, sources, silent);
    const nextRunOf = async (target: string) => {
      // Another server each time: one reads the schedules at most once a second.
      await using api = await serve(100, true, '2030-01-01T05:00:00Z');
      const answer = await api.get(target, { 'cache-control': 'max-age=1' });
      const { next_run, detail } = (await answer.json()) as { next_run: string | null; detail: string };
      return [
        answer.status,
        answer.headers.get('retry-after'),
        next_run,
        / due at (.*)\.$/.exec(detail)?.[1],
      ];
    };
    const UNKNOWN = [503, '60', null, undefined];
    const [providers, clusters] = ['2030-01-01T06:17:00Z', '2030-01-01T05:01:00Z'];
    expect(await nextRunOf('/v1/providers')).toEqual(UNKNOWN);
    await store();
    expect(await nextRunOf('/v1/providers')).toEqual([503, '60', providers, providers]);
    expect(await nextRunOf('/v1/clusters')).toEqual([503, '60', clusters, clusters]);
    await disableSource(scene.store.db, 'plane', OPERATOR);
    await store();
    expect(await nextRunOf('/v1/clusters')).toEqual(UNKNOWN);
    await enableSource(scene.store.db, 'plane', OPERATOR);
    await store();
    expect(await nextRunOf('/v1/clusters')).toEqual([503, '60', clusters, clusters]);
    expect(await scene.cache.ttl(SCHEDULES_KEY)).toBeGreaterThan(0);
  });
});
