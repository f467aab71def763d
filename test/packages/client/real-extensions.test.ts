/** The client's extensions against a real reader, PostgreSQL and Redis: the API behaves as the other tests' fake. */
import { expect, it } from 'vitest';
import { type Change, FleetbookClient } from '../../../packages/client/src/index.ts';
import { createToken } from '../../../src/db/tokens.ts';
import { SCOPES } from '../../../src/domain/scope.ts';
import { buildApp } from '../../../src/http/app.ts';
import { feedPublisher } from '../../features/feed/feed-publisher.ts';
import { listen } from '../../http/harness.ts';
import { addMachines, reprice, setStatus } from '../../snapshot/rows.ts';
import { sceneForEachTest } from '../../snapshot/scene.ts';
import { until } from '../../support/until.ts';

const scene = sceneForEachTest();

async function serve() {
  const closing = new AsyncDisposableStack();
  const { sample, store, sql, cache } = scene;
  await addMachines(sql, sample.region, 30);
  const publisher = feedPublisher(store.db, cache);
  await publisher.publishDirty();
  const app = buildApp({
    ...(await scene.linkedReader()),
    readiness: async () => ({ ready: true, checks: {} }),
    logger: false,
    version: '1.2.3',
    limits: { maxEventLoopDelayMs: 0 },
  });
  closing.defer(() => app.close());
  const url = `http://127.0.0.1:${await listen(app)}`;
  const { token } = await createToken(store.db, { organizationId: sample.a, scopes: [...SCOPES] });
  await publisher.publishDirty();
  return {
    client: new FleetbookClient({ url, token }),
    publisher,
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  };
}

it('searches page by page the machines of the region’s list', async () => {
  await using given = await serve();
  const { sample } = scene;
  const { data: listed } = await given.client.machines(sample.provider, sample.region);
  expect(listed.length).toBeGreaterThan(30);
  const found: unknown[] = [];
  for await (const { data } of given.client.searchPages({ region: sample.region, limit: 7 })) {
    expect(data.moved).toBe(false);
    found.push(...data.machines);
  }
  const facts = {
    architecture: null,
    generation: null,
    cpu_kind: null,
    local_disk: null,
    network: null,
    included_traffic: null,
    included_ipv4: null,
    orderable_until: null,
    retires_at: null,
  };
  expect(found).toEqual(listed.map((machine) => ({ ...machine, ...facts, available_share: 1 })));
  const { data: names } = await given.client.search({ region: [sample.region], fields: ['name'], limit: 2 });
  expect(names.machines).toEqual(listed.slice(0, 2).map(({ name }) => ({ name })));
});

it('recommends the cheapest matching machine, with its cost', async () => {
  await using given = await serve();
  const { sample } = scene;
  const { data: listed } = await given.client.machines(sample.provider, sample.region);
  const { data } = await given.client.recommend({ cpu: 1, ram: 1, hours: 10, region: sample.region });
  const [cheapest] = listed;
  expect(data.recommendations).toHaveLength(1);
  expect(data.recommendations[0]?.machine.id).toBe(cheapest?.id);
  expect(data.recommendations[0]?.total).toBeCloseTo((cheapest?.price ?? 0) * 600, 12);
});

it('follows changes of machines and clusters, and continues after the last one', async () => {
  await using given = await serve();
  const { sample, sql } = scene;
  const stop = new AbortController();
  const received: Change[] = [];
  const { next } = await given.client.changePage();
  let after = next;
  const ended = (async () => {
    for await (const change of given.client.changes({ after: next, signal: stop.signal }))
      received.push(change);
  })().catch((error: unknown) => error);
  await reprice(sql, sample.small, '0.125');
  await setStatus(sql, sample.clusterOfA, 'Stopped');
  await given.publisher.publishDirty();
  const of = (type: Change['type']) => received.filter((change) => change.type === type);
  await until(() => of('machine.repriced').length === 1 && of('cluster.changed').length > 0);
  expect(of('machine.repriced')[0]).toMatchObject({
    machine: { id: sample.small, price: 0.125 },
    after: 0.125,
  });
  expect(of('cluster.changed').at(-1)).toMatchObject({ cluster: { status: 'Stopped' } });
  stop.abort();
  await ended;
  after = received.at(-1)?.id ?? after;
  await reprice(sql, sample.small, '0.25');
  await given.publisher.publishDirty();
  await until(async () => (await given.client.changePage({ after })).changes.length > 0);
  const page = await given.client.changePage({ after });
  expect(page.changes.map(({ type }) => type)).toEqual(['machine.repriced']);
  expect(page.more).toBe(false);
});
