import { describe, expect, it } from 'vitest';
import { adapter } from '../../../src/sources/clusters/upcloud.ts';
import type { ClusterItem } from '../../../src/sources/source.ts';
import { type FakeUpstream, fakeUpstream } from '../../support/fake-upstream.ts';
import { onlyClusters, readClusterItems } from './read.ts';

const DATABASES = '/1.3/database';
const DATABASE = {
  uuid: '09e69439-573e-49a8-ba1b-e54156190417',
  name: 'orders',
  title: 'Orders',
  type: 'pg',
  state: 'running',
  node_count: 2,
  plan: '2x2xCPU-4GB-50GB',
  zone: 'de-fra1',
  create_time: '2021-08-25T08:47:06Z',
};

/** @param total the header's number; undefined omits the header */
function page(upstream: FakeUpstream, offset: number, rows: readonly unknown[], total?: string): void {
  const headers = total === undefined ? {} : { 'upcloud-total-count': total };
  const call = { path: DATABASES, query: { limit: '100', offset: String(offset) } };
  upstream.expect(call, { json: rows, headers });
}

async function itemsOf(row: object, options: Record<string, string> = {}): Promise<ClusterItem[]> {
  await using upstream = await fakeUpstream();
  page(upstream, 0, [{ ...DATABASE, ...row }], '1');
  return await readClusterItems(adapter, upstream.url, options);
}

async function clusterOf(row: object, options: Record<string, string> = {}) {
  const [cluster] = onlyClusters(await itemsOf(row, options));
  return cluster;
}

/** This many different databases. */
const many = (length: number) => Array.from({ length }, (_, index) => ({ ...DATABASE, uuid: `id-${index}` }));

describe('a database of UpCloud', () => {
  it.each([
    ['running', 'Active'],
    ['poweroff', 'Stopped'],
    ['pending', 'pending'],
    ['setup-network', 'setup-network'],
    ['rebuilding', 'rebuilding'],
    ['a new word', 'a new word'],
    ['toString', 'toString'],
  ])('in the state %s has the status %s', async (state, status) => {
    expect(await clusterOf({ state })).toMatchObject({ status, shards: 1, replicas: 2 });
  });

  it('is named by its title, else by its name', async () => {
    expect(await clusterOf({})).toMatchObject({ name: 'Orders' });
    for (const title of ['', null, undefined])
      expect(await clusterOf({ title })).toMatchObject({ name: 'orders' });
  });

  it.each([
    ['3x20xCPU-128GB-2000GB', 20, 128, 2000],
    ['1x2xCPU-4GB-80GB-1D', 2, 4, 80],
    ['2x16xCPU-64GB-1500GB', 16, 64, 1500],
  ])('of the plan %s has machines of %d CPUs, %d GiB and %d GiB of disk', async (plan, cpu, ram, size) => {
    expect(await clusterOf({ plan })).toMatchObject({
      machine: { name: plan, cpu, ram, ramUnit: 'Binary' },
      disks: [{ type: {}, size, unit: 'GiB' }],
    });
  });

  it('has the disk of its plan and the added space', async () => {
    expect((await clusterOf({ additional_disk_space_gib: 30 }))?.disks).toEqual([
      { type: {}, size: 80, unit: 'GiB' },
    ]);
  });

  it.each(['business-4', '2x2xCPU', '0x2xCPU-4GB-50GB', 'x2x2xCPU-4GB-50GB', '2x2xCPU-4GB50GB'])(
    'of the plan %s, which states no shape, has a machine with only that name, and unknown disks',
    async (plan) => {
      const cluster = await clusterOf({ plan, additional_disk_space_gib: 10 });
      expect(cluster?.machine).toEqual({ name: plan });
      expect(cluster).not.toHaveProperty('disks');
    },
  );

  it('prefers the stated parts of its plan to the plan’s name', async () => {
    const plan_components = {
      compute: { name: 'rdb.memory.2CPU-16GB', cpu: 2, memory_gb: 15.5 },
      storage: { total_gib: 90 },
    };
    expect(await clusterOf({ plan_components, additional_disk_space_gib: 10 })).toMatchObject({
      machine: { name: 'rdb.memory.2CPU-16GB', cpu: 2, ram: 16, ramUnit: 'Binary' },
      disks: [{ type: {}, size: 90, unit: 'GiB' }],
    });
  });

  it('has the label of the option organizationLabel as tenant, or none', async () => {
    const labels = [
      { key: 'env', value: 'prod' },
      { key: 'team', value: 'acme' },
    ];
    expect(await clusterOf({ labels }, { organizationLabel: 'team' })).toMatchObject({ tenant: 'acme' });
    for (const organizationLabel of ['owner', 'Team'])
      expect(await clusterOf({ labels }, { organizationLabel })).toMatchObject({ tenant: undefined });
    expect(await clusterOf({ labels })).toMatchObject({ tenant: undefined });
    const empty = await clusterOf({ labels: [{ key: 'team', value: '' }] }, { organizationLabel: 'team' });
    expect(empty).toMatchObject({ tenant: undefined });
  });

  it.each([
    ['node_count', 0, 'a whole number above 0'],
    ['additional_disk_space_gib', -1, 'a whole number, 0 or above'],
    ['create_time', 'yesterday', 'an instant'],
    ['zone', '', 'text of 1 to 255 characters'],
    ['plan', null, 'text'],
  ])('with the %s %j is rejected with both', async (field, value, wanted) => {
    expect(await itemsOf({ [field]: value })).toEqual([
      {
        kind: 'rejected',
        key: DATABASE.uuid,
        reason: expect.stringMatching(`^${field} must be ${wanted}.*; it is ${JSON.stringify(value)}$`),
      },
    ]);
  });

  it('without a type is rejected: it may be a cluster', async () => {
    expect(await itemsOf({ type: undefined })).toEqual([
      { kind: 'rejected', key: DATABASE.uuid, reason: 'type is missing; it must be text' },
    ]);
  });
});

describe('databases of UpCloud', () => {
  it('have the types of the option', async () => {
    expect(await itemsOf({}, { types: 'mysql' })).toEqual([]);
    expect(await itemsOf({ type: 'cassandra', plan: 7 })).toEqual([]);
    expect(await itemsOf({ type: 'cassandra' }, { types: 'pg, cassandra' })).toHaveLength(1);
  });

  it('are read page by page, as far as the header counts', async () => {
    await using upstream = await fakeUpstream();
    page(upstream, 0, many(40), '41');
    page(upstream, 40, [{ ...DATABASE, uuid: 'last' }], '41');
    const clusters = onlyClusters(await readClusterItems(adapter, upstream.url));
    expect(new Set(clusters.map(({ key }) => key)).size).toBe(41);
  });

  it('are read until a page is not full if no header counts them', async () => {
    await using upstream = await fakeUpstream();
    page(upstream, 0, many(100));
    page(upstream, 100, []);
    expect(await readClusterItems(adapter, upstream.url)).toHaveLength(100);
  });

  it('may be absent', async () => {
    await using upstream = await fakeUpstream();
    page(upstream, 0, [], '0');
    expect(await readClusterItems(adapter, upstream.url)).toEqual([]);
  });

  it('are not read if fewer arrive than the header counts', async () => {
    await using upstream = await fakeUpstream();
    page(upstream, 0, many(2), '3');
    page(upstream, 2, [], '3');
    await expect(readClusterItems(adapter, upstream.url)).rejects.toMatchObject({
      kind: 'invalid',
      message: `${DATABASES} lists nothing more after 2 of 3 rows`,
    });
  });

  it.each(['many', '', '-1', '1e3'])('are not read if the header counts %j of them', async (total) => {
    await using upstream = await fakeUpstream();
    page(upstream, 0, [DATABASE], total);
    await expect(readClusterItems(adapter, upstream.url)).rejects.toMatchObject({
      kind: 'invalid',
      message: expect.stringContaining('the header upcloud-total-count must be a whole number'),
    });
  });
});
