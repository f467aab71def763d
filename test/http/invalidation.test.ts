/** Invalidation of cached responses by a change: the affected ones leave, the others stay. */
import { expect, it, vi } from 'vitest';
import { createToken } from '../../src/db/tokens.ts';
import { SCOPES } from '../../src/domain/scope.ts';
import { buildApp } from '../../src/http/app.ts';
import { addMachines, reprice, setStatus, verify } from '../snapshot/rows.ts';
import { loseEntry, type ReaderOptions, sceneForEachTest } from '../snapshot/scene.ts';
import { until } from '../support/until.ts';
import { listen, PATIENT } from './harness.ts';
import { converse, header } from './wire.ts';

const scene = sceneForEachTest();

/** An API with counted cached responses, and its requests. */
async function start(options: Partial<ReaderOptions> = {}) {
  const create = (organizationId: number) => createToken(scene.store.db, { organizationId, scopes: SCOPES });
  const [tokenOfA, tokenOfB] = [await create(scene.sample.a), await create(scene.sample.b)];
  await scene.publisher.publishDirty();
  const reader = await scene.linkedReader(options);
  const app = buildApp({
    ...reader,
    readiness: async () => ({ ready: true, checks: {} }),
    logger: false,
    version: '1.2.3',
    limits: PATIENT,
  });
  const port = await listen(app);
  const { provider, region, emptyRegion, small } = scene.sample;
  const paths = {
    region: [`/v1/machines?provider=${provider}&region=${region}`, tokenOfA],
    machine: [`/v1/machines/${small}`, tokenOfA],
    otherRegion: [`/v1/machines?provider=${provider}&region=${emptyRegion}`, tokenOfA],
    providers: ['/v1/providers', tokenOfA],
    clustersOfA: ['/v1/clusters', tokenOfA],
    clusterOfA: ['/v1/clusters/cluster-test', tokenOfA],
    clustersOfB: ['/v1/clusters', tokenOfB],
  } as const;
  type What = keyof typeof paths;
  const fetchWhat = async (what: What) => {
    const [target, { token }] = paths[what];
    const request = { method: 'GET', target, headers: [`Authorization: Bearer ${token}`] };
    const [answer] = await converse(port, [request]);
    return answer ?? expect.unreachable('no answer');
  };
  const names = Object.keys(paths) as What[];
  return {
    reader,
    fetchWhat,
    names,
    /** Repeats the request until the response cache answers. */
    cache: (what: What) =>
      until(async () => {
        const before = reader.responses.hits;
        const answer = await fetchWhat(what);
        return reader.responses.hits > before && answer;
      }),
    /** Returns those that the response cache answers at their next request. */
    async cached(wanted: readonly What[] = names): Promise<What[]> {
      const found: What[] = [];
      for (const what of wanted) {
        const before = reader.responses.hits;
        await fetchWhat(what);
        if (reader.responses.hits > before) found.push(what);
      }
      return found;
    },
    [Symbol.asyncDispose]: () => app.close(),
  };
}

it('a publication invalidates only the responses of its document', async () => {
  await using api = await start();
  for (const what of api.names) await api.cache(what);
  const { responses, documents } = api.reader;
  expect(responses.count).toBe(api.names.length);

  const region = { kind: 'region', regionId: scene.sample.region } as const;
  await reprice(scene.sql, scene.sample.small, '0.5');
  await scene.publisher.publishDirty();
  await until(() => documents.getFresh(region) === undefined);
  expect(responses.count).toBe(api.names.length - 2);
  expect(
    await api.cached(['otherRegion', 'providers', 'clustersOfA', 'clusterOfA', 'clustersOfB']),
  ).toHaveLength(5);
  expect(await api.cached(['region', 'machine'])).toEqual([]);
  expect(JSON.parse((await api.cache('machine')).body)).toMatchObject({ price: 0.5 });
  await api.cache('region');

  const clusters = { kind: 'clusters', organizationId: scene.sample.a } as const;
  await setStatus(scene.sql, scene.sample.clusterOfA, 'Stopped');
  await scene.publisher.publishDirty();
  await until(() => documents.getFresh(clusters) === undefined);
  expect(responses.count).toBe(api.names.length - 2);
  expect(await api.cached(['region', 'machine', 'otherRegion', 'providers', 'clustersOfB'])).toHaveLength(5);
  expect(JSON.parse((await api.cache('clusterOfA')).body)).toMatchObject({ status: 'Stopped' });
});

it('a repeated read of a source changes a header field and invalidates no response', async () => {
  await using api = await start();
  for (const what of api.names) await api.cache(what);
  const before = await api.fetchWhat('machine');
  await verify(scene.sql, 'cloud', '2026-02-03T04:05:06.789Z');
  await scene.publisher.publishDirty();
  await api.reader.caughtUp();
  expect(await api.cached()).toEqual(api.names);
  const after = await api.fetchWhat('machine');
  expect(header(after, 'fleetbook-as-of')).toBe('2026-02-03T04:05:06.789Z');
  expect([after.body, header(after, 'etag')]).toEqual([before.body, header(before, 'etag')]);
});

it('all responses are dropped if entries were lost, and return without a read of a body', async () => {
  await using api = await start({ blockMs: 20 });
  for (const what of api.names) await api.cache(what);
  const { link, responses } = api.reader;
  const { epoch } = link;
  await loseEntry(scene);
  await until(() => link.linked && link.epoch > epoch);
  expect(responses.count).toBe(0);
  for (const what of api.names) expect(header(await api.cache(what), 'fleetbook-tier')).toBe('memory');
});

it('no cached response is sent while the reader is not linked', async () => {
  await using api = await start();
  await api.cache('region');
  const linked = vi.spyOn(api.reader.link, 'linked', 'get').mockReturnValue(false);
  expect(await api.cached(['region'])).toEqual([]);
  linked.mockRestore();
  expect(await api.cached(['region'])).toEqual(['region']);
});

it('no response outlives its document in a small memory', async () => {
  await addMachines(scene.sql, scene.sample.region, 20);
  await using api = await start({ memoryLimit: 80_000 });
  const { responses, documents } = api.reader;
  const region = { kind: 'region', regionId: scene.sample.region } as const;
  await api.cache('region');
  // Fifty others evict it.
  for (let id = 1000; id < 1050; id++) await documents.get({ kind: 'clusters', organizationId: id });
  expect(documents.getFresh(region)).toBeUndefined();
  expect(responses.count).toBe(0);
  expect(await api.cached(['region'])).toEqual([]);
});
