import { describe, expect, it } from 'vitest';
import { adapter } from '../../../src/sources/clusters/aiven.ts';
import { catalogueAdapters } from '../../../src/sources/registry.ts';
import { readOptions } from '../../../src/sources/schema/options.ts';
import type { ClusterItem } from '../../../src/sources/source.ts';
import { type FakeUpstream, fakeUpstream } from '../../support/fake-upstream.ts';
import { onlyClusters, readClusterItems } from './read.ts';

const SERVICE = {
  service_name: 'orders',
  service_type: 'pg',
  state: 'RUNNING',
  cloud_name: 'aws-eu-west-1',
  plan: 'business-4',
  node_count: 2,
  create_time: '2024-01-15T10:30:00Z',
};
type Service = Readonly<Record<string, unknown>>;

function services(upstream: FakeUpstream, project: string, ...rows: readonly Service[]): void {
  const json = { services: rows.map((row) => ({ ...SERVICE, ...row })) };
  upstream.expect({ path: `/v1/project/${project}/service` }, { json });
}

function projects(upstream: FakeUpstream, ...names: readonly unknown[]): void {
  const json = { projects: names.map((project_name) => ({ project_name })) };
  upstream.expect({ path: '/v1/project' }, { json });
}

/** Reads one service, in the project of the options. */
async function itemsOf(row: Service, options: Record<string, string> = {}): Promise<ClusterItem[]> {
  await using upstream = await fakeUpstream();
  services(upstream, 'acme', row);
  return await readClusterItems(adapter, upstream.url, { projects: 'acme', ...options });
}

async function clusterOf(row: Service) {
  const [cluster] = onlyClusters(await itemsOf(row));
  return cluster;
}

const node = (shard: object | null, state = 'running') => ({ name: 'n', state, shard });

describe('a service of Aiven', () => {
  it.each([
    ['RUNNING', 'Active'],
    ['POWEROFF', 'Stopped'],
    ['REBUILDING', 'REBUILDING'],
    ['REBALANCING', 'REBALANCING'],
    ['constructor', 'constructor'],
  ])('in the state %s has the status %s', async (state, status) => {
    expect(await clusterOf({ state })).toMatchObject({ status });
  });

  it.each<[string, Service, { shards: number; replicas: number }]>([
    ['with nodes outside of any shard has one shard', { node_count: 3 }, { shards: 1, replicas: 3 }],
    ['without nodes has one shard', { node_states: [] }, { shards: 1, replicas: 2 }],
    [
      'has as many shards as its nodes name',
      {
        node_count: 4,
        node_states: [
          node({ name: 's_1', position: 0 }),
          node({ name: 's_1', position: 0 }),
          node({ name: 's_2', position: 1 }),
          node({ name: 's_2', position: 1 }),
        ],
      },
      { shards: 2, replicas: 2 },
    ],
    [
      'counts unnamed shards by position',
      { node_states: [node({ position: 0 }), node({ position: 1 })] },
      { shards: 2, replicas: 1 },
    ],
    [
      'counts neither a leaving node nor its shard',
      {
        node_count: 1,
        node_states: [node({ name: 's_1' }, 'leaving'), node({ name: 's_2' }, 'syncing_data')],
      },
      { shards: 1, replicas: 1 },
    ],
    [
      'has the replicas of its largest shard while nodes are uneven',
      { node_count: 5, node_states: [node({ name: 's_1' }), node({ name: 's_2' })] },
      { shards: 2, replicas: 3 },
    ],
    ['may have nodes of unknown shards', { node_states: [node(null), node({})] }, { shards: 1, replicas: 2 }],
  ])('%s', async (_, row, expected) => {
    expect(await clusterOf(row)).toMatchObject(expected);
  });

  it.each([
    [1024, 1],
    [3840, 4],
    [4096, 4],
    [4200, 5],
    [7936.5, 8],
    [512, 1],
  ])('with %d MB of memory has a machine of %d GiB, rounded up', async (node_memory_mb, ram) => {
    expect(await clusterOf({ node_cpu_count: 2, node_memory_mb })).toMatchObject({
      machine: { name: 'business-4', cpu: 2, ram, ramUnit: 'Binary' },
    });
  });

  it.each([{ node_cpu_count: 2 }, { node_memory_mb: 4096 }, { node_cpu_count: null, node_memory_mb: 4096 }])(
    'with half of a shape has only its plan as machine: %j',
    async (row) => {
      expect((await clusterOf(row))?.machine).toEqual({ name: 'business-4' });
    },
  );

  it.each([
    [81920, [{ type: {}, size: 80, unit: 'GiB' }]],
    [1536, [{ type: {}, size: 1.5, unit: 'GiB' }]],
    [0, []],
    [null, undefined],
    [undefined, undefined],
  ])(
    'with %s MB of disk space has these disks, with an unknown type and price: %j',
    async (disk_space_mb, disks) => {
      expect((await clusterOf({ disk_space_mb }))?.disks).toEqual(disks);
    },
  );

  it.each<[string, string | undefined, string, string?]>([
    ['aws-eu-west-1', 'aws', 'eu-west-1'],
    ['aws-us-gov-west-1', 'aws', 'us-gov-west-1'],
    ['google-europe-west1', 'google', 'europe-west1', 'GCP'],
    ['azure-germany-westcentral', 'azure', 'germany-westcentral'],
    ['do-fra', 'do', 'fra', 'DigitalOcean'],
    ['avn-ovh-waw1', 'avn-ovh', 'waw1', 'OVH'],
    ['oci-us-phoenix-1', 'oci', 'us-phoenix-1'],
    ['upcloud-de-fra', 'upcloud', 'de-fra'],
    ['custom-aws-frankfurt', undefined, 'custom-aws-frankfurt'],
    ['elsewhere', undefined, 'elsewhere'],
    ['aws-', undefined, 'aws-'],
  ])('in the cloud %s is at %s in the region %s', async (cloud_name, provider, code, providerName) => {
    const cluster = await clusterOf({ cloud_name });
    expect([cluster?.provider, cluster?.region]).toEqual([provider, { code }]);
    expect(cluster?.providerName).toBe(providerName);
  });

  it.each([
    'aws-eu-west-1',
    'azure-westeurope',
    'do-fra',
    'google-us-east1',
    'upcloud-de-fra',
    'avn-ovh-waw1',
  ])('in the cloud %s is at a provider that has a catalogue', async (cloud_name) => {
    const catalogues = catalogueAdapters.map(({ provider }) => provider?.name.toLowerCase());
    const cluster = await clusterOf({ cloud_name });
    expect(catalogues).toContain((cluster?.providerName ?? cluster?.provider)?.toLowerCase());
  });

  it('without node_count has the nodes of its node_states except a leaving one', async () => {
    const node_states = [
      node({ name: 's_1' }),
      node({ name: 's_1' }),
      node({ name: 's_2' }),
      node({ name: 's_2' }),
      node({ name: 's_3' }, 'leaving'),
    ];
    for (const node_count of [undefined, null])
      expect(await clusterOf({ node_count, node_states })).toMatchObject({ shards: 2, replicas: 2 });
  });

  it.each([{}, { node_states: null }, { node_states: [] }, { node_states: [node(null, 'leaving')] }])(
    'without a number of nodes is rejected: %j',
    async (row) => {
      expect(await itemsOf({ node_count: undefined, ...row })).toEqual([
        {
          kind: 'rejected',
          key: 'acme/orders',
          reason:
            'node_count is missing, and node_states names no node; one of them must state the count of nodes',
        },
      ]);
    },
  );

  it.each([
    ['node_count', 0, 'a whole number above 0'],
    ['node_cpu_count', 1.5, 'a whole number above 0'],
    ['node_memory_mb', -1, 'a number above 0'],
    ['disk_space_mb', '80 GB', 'a whole number, 0 or above'],
    ['create_time', 'yesterday', 'an instant'],
    ['cloud_name', '', 'text of 1 to 255 characters'],
  ])('with the %s %j is rejected with both', async (field, value, wanted) => {
    const [item, ...others] = await itemsOf({ [field]: value });
    expect(others).toEqual([]);
    expect(item).toEqual({
      kind: 'rejected',
      key: 'acme/orders',
      reason: expect.stringMatching(`^${field} must be ${wanted}.*; it is ${JSON.stringify(value)}$`),
    });
  });
});

describe('services of Aiven', () => {
  it('that are not databases are not clusters, unless the option types names them', async () => {
    const kafka = { service_type: 'kafka', node_count: 'not looked at' };
    expect(await itemsOf(kafka)).toEqual([]);
    expect(await itemsOf({ service_type: 'kafka' }, { types: 'pg , kafka' })).toHaveLength(1);
    expect(await itemsOf({}, { types: 'clickhouse' })).toEqual([]);
  });

  it('without a type are rejected: they may be clusters', async () => {
    expect(await itemsOf({ service_type: undefined })).toEqual([
      { kind: 'rejected', key: 'acme/orders', reason: 'service_type is missing; it must be text' },
    ]);
  });

  it('are read from the projects of the options, each once, without a list of projects', async () => {
    await using upstream = await fakeUpstream();
    services(upstream, 'acme', {});
    services(upstream, 'acme-test', {});
    const items = await readClusterItems(adapter, upstream.url, { projects: 'acme,acme-test, acme' });
    const clusters = onlyClusters(items);
    expect(clusters.map(({ key, tenant }) => [key, tenant])).toEqual([
      ['acme/orders', 'acme'],
      ['acme-test/orders', 'acme-test'],
    ]);
  });

  it('are not read at all if one project cannot be read', async () => {
    await using upstream = await fakeUpstream();
    projects(upstream, 'acme', 'other');
    services(upstream, 'acme', {});
    upstream.expect({ path: '/v1/project/other/service' }, { status: 403, json: { message: 'Forbidden' } });
    await expect(readClusterItems(adapter, upstream.url)).rejects.toMatchObject({
      kind: 'misconfigured',
      message: expect.stringContaining('/v1/project/other/service answers 403'),
    });
  });

  it.each(['../../v2', 'a/b', '', 7, '..'])('of a project named %j are not requested', async (name) => {
    await using upstream = await fakeUpstream();
    projects(upstream, name);
    await expect(readClusterItems(adapter, upstream.url)).rejects.toMatchObject({
      kind: 'invalid',
      message: expect.stringContaining('/v1/project: projects[0].project_name must be'),
    });
  });
});

it('the options are names separated by commas', () => {
  const problems = (options: object) =>
    adapter.options && readOptions(adapter.options, options, String).problems.join();
  expect(problems({ projects: 'acme-prod, acme_test', types: 'pg' })).toBe('');
  for (const projects of ['', 'a,,b', 'a/b', '..', 'a b'])
    expect(problems({ projects })).toMatch(
      /^projects must be names separated by commas \(the projects to read/,
    );
  expect(problems({ project: 'acme' })).toContain('known are projects, types');
});

it('a token that no header can carry is not shown', async () => {
  await using upstream = await fakeUpstream();
  const reading = readClusterItems(adapter, upstream.url, {}, 'two words');
  await expect(reading).rejects.toMatchObject({
    kind: 'misconfigured',
    message: expect.not.stringContaining('two words'),
  });
});
