import { describe, expect, it } from 'vitest';
import { adapter } from '../../../src/sources/clusters/digitalocean.ts';
import { readOptions } from '../../../src/sources/schema/options.ts';
import type { ClusterItem } from '../../../src/sources/source.ts';
import { type FakeUpstream, fakeUpstream } from '../../support/fake-upstream.ts';
import { onlyClusters, readClusterItems } from './read.ts';

const DATABASES = '/v2/databases';
const DATABASE = {
  id: '9cc10173-e9ea-4176-9dbc-a4cee4c4ff30',
  name: 'orders',
  engine: 'pg',
  num_nodes: 2,
  region: 'fra1',
  status: 'online',
  created_at: '2024-03-05T09:17:42Z',
  size: 'db-s-2vcpu-4gb',
  project_id: '4de7ac8b-495b-4884-9a69-1050c6793cd6',
  storage_size_mib: 61440,
};

function page(upstream: FakeUpstream, number: number, json: object): void {
  upstream.expect({ path: DATABASES, query: { page: String(number), per_page: '200' } }, { json });
}

/** The upstream's link to a page, under its public address. */
function next(number: string): object {
  return { pages: { next: `https://api.digitalocean.com${DATABASES}?page=${number}&per_page=200` } };
}

async function itemsOf(row: object, options: Record<string, string> = {}): Promise<ClusterItem[]> {
  await using upstream = await fakeUpstream();
  page(upstream, 1, { databases: [{ ...DATABASE, ...row }] });
  return await readClusterItems(adapter, upstream.url, options);
}

async function clusterOf(row: object) {
  const [cluster] = onlyClusters(await itemsOf(row));
  return cluster;
}

describe('a database of DigitalOcean', () => {
  it.each([
    ['online', 'Active'],
    ['creating', 'Creating'],
    ['resizing', 'resizing'],
    ['migrating', 'migrating'],
    ['forking', 'forking'],
    ['a new word', 'a new word'],
    ['constructor', 'constructor'],
  ])('in the state %s has the status %s', async (status, expected) => {
    expect(await clusterOf({ status })).toMatchObject({ status: expected, shards: 1 });
  });

  it.each([
    ['db-s-1vcpu-1gb', 1, 1],
    ['gd-40vcpu-160gb', 40, 160],
    ['so1_5-24vcpu-192gb', 24, 192],
    ['db-intel-16vcpu-64gb', 16, 64],
    ['gd-2vcpu-8gb-intel', 2, 8],
  ])('of the size %s has machines of %d CPUs and %d GiB', async (size, cpu, ram) => {
    expect((await clusterOf({ size }))?.machine).toEqual({ name: size, cpu, ram, ramUnit: 'Binary' });
  });

  it.each(['basic-xl', 'db-s-0vcpu-4gb', 'db-s-2vcpu', 'db-s-2vcpu-512mb', '2vcpu-4gbit'])(
    'of the size %s, which states no shape, has a machine with only that name',
    async (size) => {
      expect((await clusterOf({ size }))?.machine).toEqual({ name: size });
    },
  );

  it('has unknown disks instead of none if its storage is missing', async () => {
    for (const storage_size_mib of [undefined, null])
      expect(await clusterOf({ storage_size_mib })).toMatchObject({ disks: undefined });
    expect((await clusterOf({ storage_size_mib: 10_752 }))?.disks).toEqual([
      { type: {}, size: 10.5, unit: 'GiB' },
    ]);
  });

  it('without a project has no tenant', async () => {
    for (const project_id of [undefined, null])
      expect(await clusterOf({ project_id })).toMatchObject({ tenant: undefined });
  });

  it.each([
    ['num_nodes', '2', 'a whole number above 0'],
    ['storage_size_mib', -1, 'a whole number, 0 or above'],
    ['created_at', '2025-02-31T10:00:00Z', 'an instant'],
    ['region', '', 'text of 1 to 255 characters'],
    ['size', null, 'text'],
  ])('with the %s %j is rejected with both', async (field, value, wanted) => {
    expect(await itemsOf({ [field]: value })).toEqual([
      {
        kind: 'rejected',
        key: DATABASE.id,
        reason: expect.stringMatching(`^${field} must be ${wanted}.*; it is ${JSON.stringify(value)}$`),
      },
    ]);
  });

  it('without any name is identified by its place', async () => {
    await using upstream = await fakeUpstream();
    page(upstream, 1, { databases: [DATABASE, 7] });
    const items = await readClusterItems(adapter, upstream.url);
    expect(items[1]).toMatchObject({ kind: 'rejected', key: 'database 2' });
  });
});

describe('databases of DigitalOcean', () => {
  it.each(['advanced_mysql', 'advanced_pg', 'mongodb', 'mysql', 'opensearch', 'pg', 'redis', 'valkey'])(
    'of the engine %s are clusters',
    async (engine) => {
      expect(onlyClusters(await itemsOf({ engine }))).toMatchObject([{ key: DATABASE.id }]);
    },
  );

  it('of a queue’s engine are not clusters, unless the option engines names it', async () => {
    expect(await itemsOf({ engine: 'kafka', num_nodes: 'not looked at' })).toEqual([]);
    expect(await itemsOf({ engine: 'kafka' }, { engines: 'pg , kafka' })).toHaveLength(1);
    expect(await itemsOf({}, { engines: 'mysql' })).toEqual([]);
  });

  it('are read from one page if the API names no other', async () => {
    await using upstream = await fakeUpstream();
    page(upstream, 1, { databases: [DATABASE], links: {}, meta: { total: 1 } });
    expect(await readClusterItems(adapter, upstream.url)).toHaveLength(1);
  });

  it('may be absent', async () => {
    await using upstream = await fakeUpstream();
    page(upstream, 1, { databases: [] });
    expect(await readClusterItems(adapter, upstream.url)).toEqual([]);
  });

  it('are not read if fewer arrive than the list announces', async () => {
    await using upstream = await fakeUpstream();
    page(upstream, 1, { databases: [DATABASE], meta: { total: 3 }, links: next('2') });
    page(upstream, 2, { databases: [DATABASE], meta: { total: 3 } });
    await expect(readClusterItems(adapter, upstream.url)).rejects.toMatchObject({
      kind: 'invalid',
      message: `${DATABASES} lists nothing more after 2 of 3 rows`,
    });
  });

  it.each(['1', '3', 'x', ''])('are not read if the page %j follows the first', async (number) => {
    await using upstream = await fakeUpstream();
    page(upstream, 1, { databases: [DATABASE], links: next(number) });
    await expect(readClusterItems(adapter, upstream.url)).rejects.toMatchObject({
      kind: 'invalid',
      message: expect.stringContaining(`${DATABASES}: requested page 1`),
    });
  });
});

it('the option engines is a list of names separated by commas', () => {
  const problems = (options: object) =>
    adapter.options && readOptions(adapter.options, options, String).problems.join();
  expect(problems({ engines: 'pg, mysql' })).toBe('');
  expect(problems({ engines: 'pg;mysql' })).toMatch(/^engines must be names separated by commas/);
});
