import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type {
  ClusterTerms,
  FoundCluster,
  FoundClusters,
} from '../../../src/features/console/queries/clusters.ts';
import type { ClusterAnswer } from '../../../src/features/console/routes/answers.ts';
import { disk } from '../../sync/clusters/rows.ts';
import { addOrganizations, atHetzner, statesClusters } from './clusters-scene.ts';
import { type ConsoleScene, openConsoleScene } from './scene.ts';

let scene: ConsoleScene;
beforeAll(async () => {
  scene = await openConsoleScene();
  await scene.sync(1);
  await addOrganizations(scene, { acme: 'Acme Ltd', zeta: 'Zeta' });
  const few = [
    atHetzner('acme', 'c-1', {
      name: 'Orders',
      status: 'running',
      software: { engine: 'postgresql', version: '16.4', endOfLife: '2028-11-09' },
    }),
    atHetzner('acme', 'c-2', {
      name: 'Events',
      status: 'stopped',
      region: { code: 'nbg1', name: 'nbg1' },
      software: { engine: 'postgresql', version: '9.6' },
    }),
    atHetzner('zeta', 'c-3', {
      name: 'Archive',
      status: 'running',
      createdAt: '2020-01-01T00:00:00.000000',
      software: { engine: 'FoundationDB' },
    }),
    atHetzner('zeta', 'c-4', { name: 'Old', status: 'stopped' }),
  ];
  await statesClusters(scene, few);
  const [orders, events, archive] = few;
  if (!orders || !events || !archive) throw new Error('unreachable');
  await statesClusters(scene, [
    { ...orders, replicas: 3, disks: [disk('ssd', '0.002'), disk('hdd', '0.001', { autoscaling: true })] },
    events,
    archive,
  ]);
});
afterAll(() => scene[Symbol.asyncDispose]());

const find = async (query = '') => (await scene.get(`/api/clusters?limit=1000${query}`)) as FoundClusters;
const names = async (query: string) => (await find(query)).rows.map(({ name }) => name);
const named = async (name: string) =>
  (await find('&retired=all')).rows.find((each) => each.name === name) ?? expect.unreachable(name);

describe('clusters', () => {
  it('are listed with organization, place, machine and last change', async () => {
    expect((await find()).total).toBe(3);
    const orders = await named('Orders');
    expect(orders).toEqual({
      id: expect.any(Number),
      name: 'Orders',
      slug: 'orders',
      organization: { slug: 'acme', name: 'Acme Ltd' },
      provider: { id: expect.any(Number), name: 'Hetzner' },
      region: 'fsn1',
      machine: {
        id: expect.any(Number),
        name: 'cx11',
        cpu: 2,
        ram: 4,
        ramUnit: expect.any(String),
        orderableUntil: null,
        retiresAt: null,
      },
      status: 'running',
      shards: 1,
      replicas: 3,
      engine: 'postgresql',
      version: '16.4',
      endOfLife: '2028-11-09',
      createdAt: '2022-02-14T10:11:26Z',
      changedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:]{8}Z$/),
      retiredAt: null,
    });
  });

  it.each([
    ['&q=ord', ['Orders']],
    ['&q=ACME', ['Events', 'Orders']],
    ['&q=Zet', ['Archive']],
    ['&organization=acme', ['Events', 'Orders']],
    ['&organization=acm', []],
    ['&status=running', ['Archive', 'Orders']],
    ['&retired=yes', ['Old']],
    ['&retired=all&status=stopped', ['Events', 'Old']],
    ['&provider=2147483647', []],
    ['&engine=postgresql', ['Events', 'Orders']],
    ['&engine=postgresql&version=9.6', ['Events']],
    ['&engine=FoundationDB', ['Archive']],
    ['&engine=redis', []],
    ['&order=desc', ['Orders', 'Events', 'Archive']],
  ])('are searched by %s', async (query, expected) => {
    expect(await names(query)).toEqual(expected);
  });

  it('have engines with their versions, in the order of numbers', async () => {
    const { engines } = (await scene.get('/api/cluster-terms')) as ClusterTerms;
    expect(engines).toEqual([
      { engine: 'FoundationDB', versions: [] },
      { engine: 'postgresql', versions: ['9.6', '16.4'] },
    ]);
  });

  it('are not searched by an engine that neither Fleetbook nor a cluster has', async () => {
    const answer = await scene.get('/api/clusters?engine=postgers');
    expect(answer).toEqual({
      error: expect.stringMatching(/engine must be one of .*postgresql.*; it is "postgers"/),
      field: 'engine',
    });
  });

  it('are searched by a provider that has some', async () => {
    const { providers, statuses } = (await scene.get('/api/cluster-terms')) as {
      providers: { id: number; name: string }[];
      statuses: string[];
    };
    expect(providers.map(({ name }) => name)).toEqual(['Hetzner']);
    expect(statuses).toEqual(['running', 'stopped']);
    expect((await find(`&provider=${providers[0]?.id}`)).total).toBe(3);
  });

  it.each<[string, (cluster: FoundCluster) => string]>([
    ['name', ({ name }) => name.toLowerCase()],
    ['organization', ({ organization, name }) => `${organization.slug} ${name.toLowerCase()}`],
    ['provider', ({ region, name }) => `${region} ${name.toLowerCase()}`],
    ['status', ({ status, name }) => `${status} ${name.toLowerCase()}`],
    ['engine', ({ engine, version, name }) => `${engine ?? '~'} ${version ?? '~'} ${name.toLowerCase()}`],
    ['created', ({ createdAt, name }) => `${createdAt} ${name.toLowerCase()}`],
  ])('are sorted by %s, both ways and without a gap between pages', async (sort, key) => {
    for (const order of ['asc', 'desc']) {
      const { rows } = await find(`&retired=all&sort=${sort}&order=${order}`);
      const sorted = rows.map(key).toSorted();
      expect(rows.map(key)).toEqual(order === 'asc' ? sorted : sorted.reverse());
      const pages = [];
      for (let offset = 0; offset < 4; offset += 3) {
        const page = `/api/clusters?retired=all&sort=${sort}&order=${order}&limit=3&offset=${offset}`;
        pages.push(...((await scene.get(page)) as FoundClusters).rows);
      }
      expect(pages).toEqual(rows);
    }
  });

  it('reject wrong values, with the name of the parameter', async () => {
    expect(await scene.get('/api/clusters?sort=size')).toMatchObject({ field: 'sort' });
    expect(await scene.get('/api/clusters?provider=acme')).toMatchObject({ field: 'provider' });
    expect(await scene.get('/api/clusters?retired=maybe')).toMatchObject({ field: 'retired' });
    for (const id of ['999999', 'x', '0'])
      expect(await scene.get(`/api/clusters/${id}`)).toEqual({ error: `there is no cluster ${id}` });
  });
});

describe('one cluster', () => {
  const show = async (name: string, query = '') =>
    (await scene.get(`/api/clusters/${(await named(name)).id}${query}`)) as ClusterAnswer;

  it('is shown with its disks and its source', async () => {
    const { cluster } = await show('Orders');
    expect(cluster).toMatchObject({
      ...(await named('Orders')),
      source: 'plane',
      key: 'c-1',
      regionName: 'fsn1',
      user: 'Ada Lovelace',
      missedRuns: 0,
      verifiedAt: expect.stringMatching(/Z$/),
      disks: [
        {
          name: 'ssd',
          size: 100,
          unit: 'GiB',
          autoscaling: false,
          sourceAmount: '0.002',
          sourcePer: 'minute',
          pricedUnit: 'GiB',
        },
        { name: 'hdd', autoscaling: true, sourceAmount: '0.001', sourceCurrency: 'USD' },
      ],
    });
  });

  it('has its changes in pages, the newest first', async () => {
    const { history, hasOlder } = await show('Orders');
    expect(hasOlder).toBe(false);
    expect(history).toMatchObject([
      {
        change: 'changed',
        source: 'plane',
        before: { replicas: '2', disks: '100 GiB ssd at 0.002 USD per GiB and minute' },
        after: { replicas: '3' },
      },
      { change: 'added', source: 'plane', before: null, after: null },
    ]);
    expect(history[0]?.runId).toBeGreaterThan(history[1]?.runId ?? 0);
    const first = await show('Orders', '?limit=1');
    expect(first).toMatchObject({ hasOlder: true, history: [{ change: 'changed' }] });
    const second = await show('Orders', '?limit=1&offset=1');
    expect(second).toMatchObject({ hasOlder: false, history: [{ change: 'added' }] });
  });

  it('that is retired is shown in its last state, with the time', async () => {
    const { cluster, history } = await show('Old');
    expect(cluster.retiredAt).toMatch(/Z$/);
    expect(history).toMatchObject([
      { change: 'retired', before: { name: 'Old', user: 'Ada Lovelace' }, after: null },
      { change: 'added' },
    ]);
  });
});
