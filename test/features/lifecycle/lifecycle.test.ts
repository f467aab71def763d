import { describe, expect, it } from 'vitest';
import type { ClusterDetailsDocument, LifecycleDocument } from '../../../src/features/lifecycle/schemas.ts';
import { addCluster, addSource, verify } from '../../snapshot/rows.ts';
import { sceneForEachTest } from '../../snapshot/scene.ts';
import { openCosts } from '../costs/scene.ts';

const scene = sceneForEachTest();

const NOW = Date.parse('2026-08-22T12:00:00Z');
const READ_AT = '2026-08-22T04:50:00.000Z';

const open = () => openCosts(scene, { now: () => NOW });

const add = (slug: string, fields: { engine?: string; version?: string; endOfLife?: string } = {}) =>
  addCluster(scene.sql, scene.sample.a, {
    ...{ slug, source: 'plane', regionId: scene.sample.region, machineId: scene.sample.small },
    ...fields,
  });

/** Cycles as a source would store them: name and end; `ended` for an end without a date. */
async function addCycles(engine: string, cycles: Readonly<Record<string, string | null>>) {
  if ((await scene.sql`select from sources where id = 'lifecycles'`).length === 0) {
    await scene.sql`insert into sources (id, kind, adapter) values ('lifecycles', 'lifecycles', 'endoflife')`;
    await verify(scene.sql, 'lifecycles', READ_AT);
  }
  for (const [name, end] of Object.entries(cycles))
    await scene.sql`
      insert into lifecycles (source_id, engine, name, end_of_life, has_ended, released_on, latest)
      values ('lifecycles', ${engine}, ${name}, ${end === 'ended' ? null : end}::text::date, ${end === 'ended'},
        '2020-01-02', ${`${name}.9`})`;
}

const slugsOf = ({ clusters }: LifecycleDocument) => clusters.map(({ cluster }) => cluster.slug);

describe('/v1/clusters/{slug}/details', () => {
  it('has engine, version and the end of the release cycle', async () => {
    await add('orders', { engine: 'postgresql', version: '14.15' });
    await addCycles('postgresql', { 14: '2026-11-12' });
    await using api = await open();
    expect(await api.json('/v1/clusters/orders/details')).toEqual({
      cluster: {
        slug: 'orders',
        name: 'orders',
        status: 'Active',
        provider: { id: 1, name: 'Wölkchen 🚀' },
        region: { name: 'Zürich', code: 'zrh' },
      },
      engine: 'postgresql',
      version: '14.15',
      state: 'supported',
      end_of_life: '2026-11-12',
      days_left: 82,
      stated_by: 'endoflife.date',
      cycle: {
        name: '14',
        released_on: '2020-01-02',
        active_until: null,
        end_of_life: '2026-11-12',
        extended_until: null,
        latest: '14.9',
        link: 'https://endoflife.date/postgresql',
      },
      reason: null,
    });
  });

  it('names the provider whose own day has priority', async () => {
    await add('orders', { engine: 'mysql', version: '8', endOfLife: '2026-04-30' });
    await using api = await open();
    expect(await api.json('/v1/clusters/orders/details')).toMatchObject({
      state: 'ended',
      end_of_life: '2026-04-30',
      days_left: -114,
      stated_by: 'Wölkchen 🚀',
      cycle: null,
      reason: null,
    });
  });

  it('states what is unknown, with the reason', async () => {
    await using api = await open();
    expect(await api.json('/v1/clusters/cluster-test/details')).toMatchObject({
      ...{ engine: null, version: null, state: 'unknown', end_of_life: null, days_left: null },
      ...{ stated_by: null, cycle: null, reason: 'no_engine' },
    });
  });

  it('has the 404 of the contract for a foreign and an unknown slug of any length', async () => {
    await add('of-a', { engine: 'postgresql', version: '16' });
    await using api = await open();
    const problemOf = async (url: string, of: 'a' | 'b') => {
      const response = await api.get(url, of);
      const { instance: _, ...problem } = response.json();
      // Ids of requests have different lengths.
      const { 'x-request-id': __, date: ___, 'content-length': ____, ...headers } = response.headers;
      return { status: response.statusCode, problem, headers };
    };
    const wanted = await problemOf('/v1/clusters/no-cluster', 'b');
    expect(wanted.status).toBe(404);
    for (const slug of ['no-cluster', 'of-a', 'x'.repeat(5000), '%20', 'details', '%00', 'ä'])
      expect(await problemOf(`/v1/clusters/${encodeURIComponent(slug)}/details`, 'b')).toEqual(wanted);
  });

  it('leaves a cluster named details, and the documents of the contract, as they were', async () => {
    await using before = await open();
    const [list, one] = [await before.get('/v1/clusters'), await before.get('/v1/clusters/cluster-test')];
    await scene.sql`update clusters set engine = 'postgresql', version = '16', end_of_life = '2027-01-01'`;
    await scene.sql`update organizations set clusters_version = clusters_version + 1`;
    await using after = await open();
    for (const [path, answer] of [
      ['/v1/clusters', list] as const,
      ['/v1/clusters/cluster-test', one] as const,
    ]) {
      const again = await after.get(path);
      expect(again.rawPayload.equals(answer.rawPayload)).toBe(true);
      expect(again.headers.etag).toBe(answer.headers.etag);
    }
    await add('details');
    await using named = await open();
    expect(await named.json('/v1/clusters/details')).toMatchObject({ slug: 'details' });
    expect(await named.json('/v1/clusters/details/details')).toMatchObject({ cluster: { slug: 'details' } });
  });

  it('needs the scope of clusters', async () => {
    await using api = await open();
    const { statusCode } = await api.app.inject({ url: '/v1/clusters/cluster-test/details' });
    expect(statusCode).toBe(401);
  });
});

describe('/v1/lifecycle', () => {
  async function addMany() {
    await addCycles('postgresql', { 12: '2024-11-21', 14: '2026-11-12', 17: '2029-11-08' });
    await addCycles('opensearch', { 1: 'ended', 3: null });
    await add('old', { engine: 'postgresql', version: '12.3' });
    await add('soon', { engine: 'postgresql', version: '14' });
    await add('new', { engine: 'postgresql', version: '17.1' });
    await add('search-old', { engine: 'opensearch', version: '1.3.20' });
    await add('search', { engine: 'opensearch', version: '3.1' });
    await add('cache', { engine: 'redis', version: '8' });
    await add('own', { engine: 'FoundationDB', version: '7' });
    await add('theirs', { engine: 'kafka', version: '3.8', endOfLife: '2026-08-22' });
  }

  it('lists ended, ending and unknown clusters, and counts all', async () => {
    await addMany();
    await using api = await open();
    const found = await api.json<LifecycleDocument>('/v1/lifecycle');
    expect(found).toMatchObject({
      within: 180,
      today: '2026-08-22',
      lifecycles_read_at: READ_AT,
      next: null,
    });
    expect(found.totals).toEqual({ clusters: 9, ended: 2, ending: 2, unknown: 3 });
    expect(found.clusters.map(({ cluster, state, reason }) => [cluster.slug, state, reason])).toEqual([
      ['search-old', 'ended', null],
      ['old', 'ended', null],
      ['theirs', 'supported', null],
      ['soon', 'supported', null],
      ['cache', 'unknown', 'no_lifecycles'],
      ['cluster-test', 'unknown', 'no_engine'],
      ['own', 'unknown', 'engine_not_covered'],
    ]);
  });

  it('takes the days literally, with the last one', async () => {
    await addMany();
    await using api = await open();
    const ending = async (within: number) => {
      const { clusters, totals } = await api.json<LifecycleDocument>(`/v1/lifecycle?within=${within}`);
      const those = clusters.filter(({ state }) => state === 'supported').map(({ cluster }) => cluster.slug);
      expect(totals.ending).toBe(those.length);
      return those;
    };
    expect(await ending(0)).toEqual(['theirs']);
    expect(await ending(81)).toEqual(['theirs']);
    expect(await ending(82)).toEqual(['theirs', 'soon']);
    expect(await ending(3650)).toEqual(['theirs', 'soon', 'new']);
  });

  it('is filtered by engines', async () => {
    await addMany();
    await using api = await open();
    const of = async (engine: string) => api.json<LifecycleDocument>(`/v1/lifecycle?engine=${engine}`);
    expect(slugsOf(await of('redis,kafka'))).toEqual(['theirs', 'cache']);
    expect((await of('postgresql')).totals).toEqual({ clusters: 3, ended: 1, ending: 1, unknown: 0 });
    expect((await of('mariadb')).totals.clusters).toBe(0);
  });

  it('has pages without a gap', async () => {
    await addMany();
    await using api = await open();
    const whole = await api.json<LifecycleDocument>('/v1/lifecycle');
    const pages: ClusterDetailsDocument[] = [];
    let path = '/v1/lifecycle?limit=2';
    for (;;) {
      const { clusters, totals, next } = await api.json<LifecycleDocument>(path);
      expect(totals).toEqual(whole.totals);
      pages.push(...clusters);
      if (next === null) break;
      path = `/v1/lifecycle?limit=2&cursor=${next}`;
    }
    expect(pages).toEqual(whole.clusters);
  });

  it('has every cluster of a large organization once', async () => {
    const slugs = Array.from({ length: 205 }, (_, i) => `many-${i}`);
    const place = { source: 'plane', regionId: scene.sample.region, machineId: scene.sample.small };
    for (const slug of slugs) await addCluster(scene.sql, scene.sample.a, { slug, ...place, disks: 0 });
    await using api = await open();
    const found = await api.json<LifecycleDocument>('/v1/lifecycle?limit=1000');
    expect(found.totals).toEqual({ clusters: 206, ended: 0, ending: 0, unknown: 206 });
    expect(slugsOf(found)).toEqual(['cluster-test', ...slugs].toSorted());
    const page = await api.json<LifecycleDocument>('/v1/lifecycle?limit=206');
    expect([page.clusters, page.next]).toEqual([found.clusters, null]);
  });

  it('of an organization without clusters is empty, and of another one is its own', async () => {
    await addMany();
    await using api = await open();
    const other = await api.json<LifecycleDocument>('/v1/lifecycle', 'b');
    const [mine] = [await api.json<LifecycleDocument>('/v1/lifecycle')];
    expect(slugsOf(other).filter((slug) => slugsOf(mine).includes(slug) && slug !== 'cluster-test')).toEqual(
      [],
    );
  });

  it.each([
    ['within=soon', 'within', 'a whole number from 0 to 3650'],
    ['within=-1', 'within', 'a whole number from 0 to 3650'],
    ['within=3651', 'within', 'a whole number from 0 to 3650'],
    ['within=1.5', 'within', 'a whole number from 0 to 3650'],
    ['within=1&within=2', 'within', 'a whole number from 0 to 3650'],
    ['engine=postgres', 'engine', 'one of'],
    ['engine=', 'engine', 'one of'],
    ['limit=0', 'limit', 'a whole number from 1 to 1000'],
    ['cursor=abc', 'cursor', '"next" of an answer to the same question'],
    ['days=3', 'days', 'within, engine, limit, cursor'],
  ])('refuses %s, and names the parameter and the remedy', async (query, parameter, remedy) => {
    await using api = await open();
    const response = await api.get(`/v1/lifecycle?${query}`);
    expect(response.statusCode).toBe(400);
    expect(response.json()).toMatchObject({ parameter, detail: expect.stringContaining(remedy) });
  });

  it('refuses a cursor of another question', async () => {
    await addMany();
    await using api = await open();
    const { next } = await api.json<LifecycleDocument>('/v1/lifecycle?limit=1');
    expect((await api.get(`/v1/lifecycle?limit=1&within=90&cursor=${next}`)).statusCode).toBe(400);
  });

  it('has the time of the oldest source of its clusters', async () => {
    await addSource(scene.sql, 'second', 'clusters');
    await verify(scene.sql, 'second', '2025-01-01T00:00:00.000Z');
    await addCluster(scene.sql, scene.sample.a, {
      ...{ slug: 'second', source: 'second', regionId: scene.sample.region, machineId: scene.sample.small },
    });
    await using api = await open();
    const { headers } = await api.get('/v1/lifecycle');
    expect(headers['fleetbook-as-of']).toBe('2025-01-01T00:00:00.000Z');
    expect(headers['fleetbook-tier']).toBe('postgres');
  });
});
