import { describe, expect, it } from 'vitest';
import { adapter } from '../../../src/sources/clusters/clickhouse-cloud.ts';
import { readOptions } from '../../../src/sources/schema/options.ts';
import type { ClusterItem } from '../../../src/sources/source.ts';
import { type FakeUpstream, fakeUpstream } from '../../support/fake-upstream.ts';
import { onlyClusters, readClusterItems } from './read.ts';

const ORGANIZATIONS = '/v1/organizations';
const ACME = '6f0c1f3a-2d6b-4f0e-9f55-8a1c7d9e4b10';
const SERVICES = `${ORGANIZATIONS}/${ACME}/services`;
const SERVICE = {
  id: 'a3163f31-21f4-4e22-844e-ef3fbc26ace2',
  name: 'Product analytics',
  provider: 'aws',
  region: 'us-east-1',
  state: 'running',
  numReplicas: 3,
  createdAt: '2025-11-21T06:23:50Z',
};

function organizations(upstream: FakeUpstream, ...ids: readonly unknown[]): void {
  upstream.expect({ path: ORGANIZATIONS }, { json: { result: ids.map((id) => ({ id })), nextCursor: null } });
}

async function itemsOf(row: object, options: Record<string, string> = {}): Promise<ClusterItem[]> {
  await using upstream = await fakeUpstream();
  organizations(upstream, ACME);
  upstream.expect({ path: SERVICES }, { json: { result: [{ ...SERVICE, ...row }] } });
  return await readClusterItems(adapter, upstream.url, options);
}

async function clusterOf(row: object, options: Record<string, string> = {}) {
  const [cluster] = onlyClusters(await itemsOf(row, options));
  return cluster;
}

describe('a service of ClickHouse Cloud', () => {
  it.each([
    ['provisioning', 'Creating'],
    ['running', 'Active'],
    ['stopped', 'Stopped'],
    ['idle', 'idle'],
    ['awaking', 'awaking'],
    ['starting', 'starting'],
    ['partially_running', 'partially_running'],
    ['degraded', 'Degraded'],
    ['terminating', 'Terminating'],
    ['toString', 'toString'],
  ])('in the state %s has the status %s', async (state, status) => {
    expect(await clusterOf({ state })).toMatchObject({ status, shards: 1 });
  });

  it.each([
    [{ numReplicas: 3, minReplicas: 1 }, 3],
    [{ numReplicas: undefined, minReplicas: 2, maxReplicas: 6 }, 2],
    [{ numReplicas: null, minReplicas: 2 }, 2],
  ])('with %j has %d replicas', async (row, replicas) => {
    expect(await clusterOf(row)).toMatchObject({ replicas });
  });

  it.each([
    [16, {}, { name: '16 GiB', cpu: 4, ram: 16, ramUnit: 'Binary' }],
    [28, {}, { name: '28 GiB', cpu: 8, ram: 28, ramUnit: 'Binary' }],
    [28, { memoryPerCpu: '4' }, { name: '28 GiB', cpu: 7, ram: 28, ramUnit: 'Binary' }],
    [12, { memoryPerCpu: '8' }, { name: '12 GiB', cpu: 2, ram: 12, ramUnit: 'Binary' }],
    [236, { memoryPerCpu: '2' }, { name: '236 GiB', cpu: 118, ram: 236, ramUnit: 'Binary' }],
    [7.5, {}, { name: '8 GiB', cpu: 2, ram: 8, ramUnit: 'Binary' }],
    [null, {}, undefined],
    [undefined, {}, undefined],
  ])('with at least %s GiB a replica, and options %j, has the machine %j', async (gib, options, machine) => {
    const cluster = await clusterOf({ minReplicaMemoryGb: gib, maxReplicaMemoryGb: 356 }, options);
    expect(cluster?.machine).toEqual(machine);
  });

  it.each([{}, { memoryPerCpu: '4' }])(
    'of another profile than the standard one has a machine without a count of CPUs, with options %j',
    async (options) => {
      const highMemory = await clusterOf({ minReplicaMemoryGb: 64, profile: 'v1-highmem-m' }, options);
      expect(highMemory?.machine).toEqual({ name: '64 GiB v1-highmem-m' });
      for (const profile of ['v1-default', null, undefined])
        expect((await clusterOf({ minReplicaMemoryGb: 64, profile }, options))?.machine).toEqual({
          name: '64 GiB',
          cpu: 16,
          ram: 64,
          ramUnit: 'Binary',
        });
    },
  );

  it.each([
    [{ numReplicas: 3, minTotalMemoryGb: 48 }, 16],
    [{ numReplicas: 2, minTotalMemoryGb: 24 }, 12],
    [{ numReplicas: 5, minTotalMemoryGb: 48 }, 10],
    [{ numReplicas: 3, minTotalMemoryGb: 48, minReplicaMemoryGb: 8 }, 8],
    [{ numReplicas: 3, minTotalMemoryGb: 48, minReplicaMemoryGb: null }, 16],
    [{ numReplicas: undefined, minReplicas: 2, maxReplicas: 6, replicaMemoryGb: 32 }, 32],
    [{ numReplicas: undefined, minReplicas: 2, replicaMemoryGb: 32, minReplicaMemoryGb: 16 }, 16],
  ])('with %j has machines of %d GiB', async (row, ram) => {
    expect((await clusterOf(row))?.machine).toMatchObject({ name: `${ram} GiB`, ram, ramUnit: 'Binary' });
  });

  it('has unknown disks instead of none', async () => {
    expect(await clusterOf({})).not.toHaveProperty('disks');
  });

  it.each([
    ['numReplicas', 0, 'must be a whole number above 0; it is 0'],
    ['minReplicaMemoryGb', '8', 'must be a number above 0; it is "8"'],
    ['minReplicaMemoryGb', 1e16, 'is beyond any machine; it is 10000000000000000'],
    ['minTotalMemoryGb', 0, 'must be a number above 0; it is 0'],
    ['createdAt', 1732170230, 'must be an instant such as .*; it is 1732170230'],
    ['state', null, 'must be text; it is null'],
  ])('with the %s %j is rejected with both', async (field, value, expected) => {
    expect(await itemsOf({ [field]: value })).toEqual([
      { kind: 'rejected', key: SERVICE.id, reason: expect.stringMatching(`^${field} ${expected}$`) },
    ]);
  });

  it('without any name is identified by its place', async () => {
    await using upstream = await fakeUpstream();
    organizations(upstream, ACME);
    upstream.expect({ path: SERVICES }, { json: { result: [SERVICE, 'what'] } });
    const items = await readClusterItems(adapter, upstream.url);
    expect(items[1]).toMatchObject({ kind: 'rejected', key: `service 2 of ${ACME}` });
  });
});

describe('services of ClickHouse Cloud', () => {
  it('are read from each organization of the key, which is their tenant', async () => {
    await using upstream = await fakeUpstream();
    organizations(upstream, ACME, 'other', ACME);
    const id = 'e7704f1d-7a3e-4d1b-9f4e-2b6c8d0a5511';
    upstream.expect({ path: SERVICES }, { json: { result: [SERVICE] } });
    upstream.expect({ path: `${ORGANIZATIONS}/other/services` }, { json: { result: [{ ...SERVICE, id }] } });
    const clusters = onlyClusters(await readClusterItems(adapter, upstream.url));
    expect(clusters.map(({ key, tenant }) => [key, tenant])).toEqual([
      [SERVICE.id, ACME],
      [id, 'other'],
    ]);
  });

  it.each(['../../v2', '', 7])('of an organization with the id %j are not requested', async (id) => {
    await using upstream = await fakeUpstream();
    organizations(upstream, id);
    await expect(readClusterItems(adapter, upstream.url)).rejects.toMatchObject({
      kind: 'invalid',
      message: expect.stringContaining('/v1/organizations: result[0].id must be'),
    });
  });

  it('are not read if a list returns to an earlier page', async () => {
    await using upstream = await fakeUpstream();
    organizations(upstream, ACME);
    upstream.expect({ path: SERVICES }, { json: { result: [], nextCursor: 'a' } });
    upstream.expect({ path: SERVICES, query: { cursor: 'a' } }, { json: { result: [], nextCursor: 'b' } });
    upstream.expect({ path: SERVICES, query: { cursor: 'b' } }, { json: { result: [], nextCursor: 'a' } });
    await expect(readClusterItems(adapter, upstream.url)).rejects.toMatchObject({
      kind: 'invalid',
      message: expect.stringContaining(`${SERVICES} repeats a page`),
    });
  });

  it('are not read if the next page is unreadable', async () => {
    await using upstream = await fakeUpstream();
    organizations(upstream, ACME);
    upstream.expect({ path: SERVICES }, { json: { result: [SERVICE], nextCursor: { page: 2 } } });
    await expect(readClusterItems(adapter, upstream.url)).rejects.toMatchObject({
      kind: 'invalid',
      message: expect.stringContaining('nextCursor'),
    });
  });
});

it.each(['0', '-4', '4.5', 'four', ''])('the option memoryPerCpu is no %j', (memoryPerCpu) => {
  const read = adapter.options && readOptions(adapter.options, { memoryPerCpu }, String);
  expect(read?.problems.join()).toMatch(/^memoryPerCpu must be a whole number above 0 \(GiB of memory/);
});

it('a key without its secret is rejected by its form', async () => {
  const reading = readClusterItems(adapter, 'http://127.0.0.1:9', {}, 'onlytheid');
  await expect(reading).rejects.toMatchObject({
    kind: 'misconfigured',
    message: "the source's token must have the form user:password",
  });
});
