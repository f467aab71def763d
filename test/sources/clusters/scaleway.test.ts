import { describe, expect, it } from 'vitest';
import { adapter } from '../../../src/sources/clusters/scaleway.ts';
import { readOptions } from '../../../src/sources/schema/options.ts';
import type { ClusterItem } from '../../../src/sources/source.ts';
import { type FakeUpstream, fakeUpstream } from '../../support/fake-upstream.ts';
import { onlyClusters, readClusterItems } from './read.ts';

const COMMON = {
  id: '11111111-aaaa-4000-8000-000000000001',
  name: 'orders',
  project_id: '105a0b1c-4f0e-4a53-9d55-8a1c7d9e4b10',
  status: 'ready',
  created_at: '2024-03-05T09:17:42Z',
};
const ROWS = {
  rdb: {
    ...COMMON,
    region: 'fr-par',
    node_type: 'db-dev-s',
    is_ha_cluster: false,
    read_replicas: [],
    volume: { type: 'lssd', size: 5_000_000_000 },
  },
  mongodb: {
    ...COMMON,
    region: 'fr-par',
    node_type: 'MGDB-PLAY2-NANO',
    node_amount: 1,
    volume: { type: 'sbs_5k', size_bytes: 5_000_000_000 },
  },
  redis: { ...COMMON, zone: 'fr-par-1', node_type: 'RED1-S', cluster_size: 1 },
} as const;
type Product = keyof typeof ROWS;

const ALL: Record<Product, Record<string, string>> = {
  rdb: { include_disabled_types: 'true' },
  mongodb: { include_disabled: 'true' },
  redis: { include_disabled_types: 'true' },
};

function pathOf(product: Product, place: string, list: 'instances' | 'node-types'): string {
  if (product !== 'redis') return `/${product}/v1/regions/${place}/${list}`;
  return `/redis/v1/zones/${place}/${list === 'instances' ? 'clusters' : list}`;
}

function instances(
  upstream: FakeUpstream,
  product: Product,
  place: string,
  rows: readonly unknown[],
  { page = 1, total = rows.length } = {},
): void {
  const query = { page: String(page), page_size: '100' };
  const field = product === 'redis' ? 'clusters' : 'instances';
  upstream.expect(
    { path: pathOf(product, place, 'instances'), query },
    { json: { [field]: rows, total_count: total } },
  );
}

function types(upstream: FakeUpstream, product: Product, place: string, rows: readonly unknown[]): void {
  const query = { page: '1', page_size: '100', ...ALL[product] };
  const json = { node_types: rows, total_count: rows.length };
  upstream.expect({ path: pathOf(product, place, 'node-types'), query }, { json });
}

/** Options that read only one product in one place. */
function only(product: Product, place: string): Record<string, string> {
  return { rdb: 'none', mongodb: 'none', redis: 'none', [product]: place };
}

async function itemsOf(
  product: Product,
  row: object,
  listed: readonly unknown[] = [],
): Promise<ClusterItem[]> {
  const place = product === 'redis' ? 'fr-par-1' : 'fr-par';
  await using upstream = await fakeUpstream();
  instances(upstream, product, place, [{ ...ROWS[product], ...row }]);
  types(upstream, product, place, listed);
  return await readClusterItems(adapter, upstream.url, only(product, place));
}

async function clusterOf(product: Product, row: object, listed: readonly unknown[] = []) {
  const [cluster] = onlyClusters(await itemsOf(product, row, listed));
  return cluster;
}

describe('a database of Scaleway', () => {
  it.each([
    ['ready', 'Active'],
    ['provisioning', 'Creating'],
    ['initializing', 'Creating'],
    ['suspended', 'Stopped'],
    ['deleting', 'Terminating'],
    ['configuring', 'configuring'],
    ['autohealing', 'Degraded'],
    ['locked', 'locked'],
    ['disk_full', 'disk_full'],
    ['a new word', 'a new word'],
    ['valueOf', 'valueOf'],
  ])('in the state %s has the status %s', async (status, expected) => {
    expect(await clusterOf('rdb', { status })).toMatchObject({ status: expected });
  });

  it.each([
    [{ is_ha_cluster: false }, 1],
    [{ is_ha_cluster: true }, 2],
    [{ is_ha_cluster: true, read_replicas: [{}, {}] }, 4],
    [{ is_ha_cluster: false, read_replicas: null }, 1],
  ])('for PostgreSQL or MySQL with %j has %d replicas', async (row, replicas) => {
    expect(await clusterOf('rdb', row)).toMatchObject({ shards: 1, replicas });
  });

  it.each([
    [1, 1, 1],
    [2, 1, 2],
    [3, 3, 1],
    [6, 6, 1],
  ])('for Redis with %d nodes has %d shards with %d replicas', async (cluster_size, shards, replicas) => {
    expect(await clusterOf('redis', { cluster_size })).toMatchObject({ shards, replicas, disks: [] });
  });

  it('for MongoDB has as many replicas as nodes', async () => {
    expect(await clusterOf('mongodb', { node_amount: 3 })).toMatchObject({ shards: 1, replicas: 3 });
  });

  it.each(['rdb', 'mongodb'] as const)('of %s without a volume has unknown disks', async (product) => {
    for (const volume of [undefined, null])
      expect(await clusterOf(product, { volume })).toMatchObject({ disks: undefined });
  });

  it('has the shape of its type in the list of types, in any case', async () => {
    const machine = { name: 'db-dev-s', cpu: 3, ram: 2, ramUnit: 'Binary' };
    for (const name of ['DB-DEV-S', 'db-dev-s', 'Db-Dev-S'])
      expect((await clusterOf('rdb', {}, [{ name, vcpus: 3, memory: 2 * 1024 ** 3 }]))?.machine).toEqual(
        machine,
      );
  });

  // The first two: data-source-redis-node-types-basic.cassette.yaml@f0872a89 of scaleway/terraform-provider-scaleway.
  it.each([
    [2_000_000_000, 2, 'Decimal'],
    [64_000_000_000, 64, 'Decimal'],
    [4 * 2 ** 30, 4, 'Binary'],
    [4_500_000_000, 5, 'Binary'],
  ])('with nodes of %d bytes has machines of %d whole GB or GiB (%s)', async (memory, ram, ramUnit) => {
    const listed = [{ name: 'RED1-S', vcpus: 2, memory }];
    expect((await clusterOf('redis', {}, listed))?.machine).toMatchObject({ ram, ramUnit });
  });

  it('whose type is not listed, or listed without its name, has a machine with only that name', async () => {
    const unnamed = [{ vcpus: 2, memory: 4_000_000_000 }, 'what', null];
    expect((await clusterOf('redis', {}, unnamed))?.machine).toEqual({ name: 'RED1-S' });
  });

  it('whose type is listed without a shape is rejected, with the field of that list', async () => {
    expect(await itemsOf('rdb', {}, [{ name: 'DB-DEV-S', vcpus: 0, memory: 2 * 1024 ** 3 }])).toEqual([
      {
        kind: 'rejected',
        key: COMMON.id,
        reason:
          'node_type is db-dev-s, which is unusable in the list of types: vcpus must be a whole number above 0; it is 0',
      },
    ]);
  });

  it.each<[Product, string, unknown, string]>([
    ['rdb', 'is_ha_cluster', null, 'true or false'],
    ['mongodb', 'node_amount', 0, 'a whole number above 0'],
    ['redis', 'cluster_size', '3', 'a whole number above 0'],
    ['rdb', 'created_at', 'yesterday', 'an instant'],
    ['redis', 'zone', '', 'text of 1 to 255 characters'],
  ])('of %s with the %s %j is rejected with both', async (product, field, value, wanted) => {
    expect(await itemsOf(product, { [field]: value })).toEqual([
      {
        kind: 'rejected',
        key: COMMON.id,
        reason: expect.stringMatching(`^${field} must be ${wanted}.*; it is ${JSON.stringify(value)}$`),
      },
    ]);
  });
});

describe('databases of Scaleway', () => {
  it('are read in each place of their product, and types only where there are databases', async () => {
    await using upstream = await fakeUpstream();
    for (const region of ['fr-par', 'nl-ams', 'pl-waw']) instances(upstream, 'rdb', region, []);
    instances(upstream, 'mongodb', 'fr-par', []);
    for (const zone of ['fr-par-1', 'fr-par-2', 'nl-ams-1', 'nl-ams-2', 'pl-waw-1', 'pl-waw-2'])
      instances(upstream, 'redis', zone, zone === 'nl-ams-2' ? [{ ...ROWS.redis, zone }] : []);
    types(upstream, 'redis', 'nl-ams-2', []);
    const [cluster, ...others] = onlyClusters(await readClusterItems(adapter, upstream.url));
    expect(others).toEqual([]);
    expect(cluster).toMatchObject({ region: { code: 'nl-ams-2' } });
  });

  it('are read page by page', async () => {
    await using upstream = await fakeUpstream();
    const row = (id: string) => ({ ...ROWS.rdb, id });
    instances(upstream, 'rdb', 'nl-ams', [row('a'), row('b')], { total: 3 });
    instances(upstream, 'rdb', 'nl-ams', [row('c')], { page: 2, total: 3 });
    types(upstream, 'rdb', 'nl-ams', []);
    const clusters = onlyClusters(await readClusterItems(adapter, upstream.url, only('rdb', 'nl-ams')));
    expect(clusters.map(({ key }) => key)).toEqual(['a', 'b', 'c']);
  });

  it('are not read if fewer arrive than the list counts', async () => {
    await using upstream = await fakeUpstream();
    instances(upstream, 'redis', 'fr-par-2', [ROWS.redis], { total: 2 });
    instances(upstream, 'redis', 'fr-par-2', [], { page: 2, total: 2 });
    await expect(readClusterItems(adapter, upstream.url, only('redis', 'fr-par-2'))).rejects.toMatchObject({
      kind: 'invalid',
      message: '/redis/v1/zones/fr-par-2/clusters lists nothing more after 1 of 2 rows',
    });
  });

  it('are not read at all if one place cannot be read', async () => {
    await using upstream = await fakeUpstream();
    instances(upstream, 'rdb', 'fr-par', [ROWS.rdb]);
    types(upstream, 'rdb', 'fr-par', []);
    const query = { page: '1', page_size: '100' };
    const json = { message: 'insufficient permissions', type: 'permissions_denied' };
    upstream.expect({ path: pathOf('rdb', 'nl-ams', 'instances'), query }, { status: 403, json });
    await expect(
      readClusterItems(adapter, upstream.url, only('rdb', 'fr-par, nl-ams')),
    ).rejects.toMatchObject({
      kind: 'misconfigured',
      message: expect.stringContaining('/rdb/v1/regions/nl-ams/instances answers 403'),
    });
  });
});

it.each(['', 'fr-par;nl-ams', '../v2', 'fr par'])('the option rdb is no %j', (rdb) => {
  const read = adapter.options && readOptions(adapter.options, { rdb }, String);
  expect(read?.problems.join()).toMatch(/^rdb must be names separated by commas \(the regions with/);
});
