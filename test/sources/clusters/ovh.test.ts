import { describe, expect, it } from 'vitest';
import { adapter } from '../../../src/sources/clusters/ovh.ts';
import type { ClusterItem } from '../../../src/sources/source.ts';
import { type FakeUpstream, fakeUpstream } from '../../support/fake-upstream.ts';
import { onlyClusters, readClusterItems } from './read.ts';

const PROJECTS = '/v1/cloud/project';
const ID = 'b1c2d3e4-0000-4000-8000-000000000001';
const SERVICE = {
  id: ID,
  description: 'orders',
  engine: 'postgresql',
  flavor: 'db1-7',
  status: 'READY',
  region: 'GRA',
  nodes: [{ region: 'GRA' }, { region: 'GRA' }],
  storage: { size: { unit: 'GB', value: 160 }, type: 'high-speed' },
  createdAt: '2024-03-05T10:17:42+01:00',
};
const FLAVOR = { name: 'db1-7', specifications: { core: 2, memory: { unit: 'GB', value: 7 } } };

function project(
  upstream: FakeUpstream,
  name: string,
  rows: readonly (object & { id: string })[],
  flavors: readonly unknown[] = [],
): void {
  const path = `${PROJECTS}/${name}/database`;
  upstream.expect({ path: `${path}/service` }, { json: rows.map(({ id }) => id) });
  if (rows.length > 0) upstream.expect({ path: `${path}/capabilities` }, { json: { flavors } });
  for (const row of rows) upstream.expect({ path: `${path}/service/${row.id}` }, { json: row });
}

async function itemsOf(
  row: object,
  flavors: readonly unknown[] = [FLAVOR],
  options: Record<string, string> = {},
): Promise<ClusterItem[]> {
  await using upstream = await fakeUpstream();
  project(upstream, 'acme', [{ ...SERVICE, ...row }], flavors);
  return await readClusterItems(adapter, upstream.url, { projects: 'acme', ...options });
}

async function clusterOf(row: object, flavors?: readonly unknown[]) {
  const [cluster] = onlyClusters(await itemsOf(row, flavors));
  return cluster;
}

describe('a database of OVH', () => {
  it.each([
    ['READY', 'Active'],
    ['CREATING', 'Creating'],
    ['UPDATING', 'UPDATING'],
    ['LOCKED_PENDING', 'LOCKED_PENDING'],
    ['SHELVED', 'SHELVED'],
    ['ERROR', 'ERROR'],
    ['hasOwnProperty', 'hasOwnProperty'],
  ])('in the state %s has the status %s', async (status, expected) => {
    expect(await clusterOf({ status })).toMatchObject({ status: expected, shards: 1 });
  });

  it.each([
    [{ nodes: [{}, {}, {}], nodeNumber: 2 }, 3],
    [{ nodes: undefined, nodeNumber: 2 }, 2],
    [{ nodes: null, nodeNumber: 1 }, 1],
    [{ nodes: [], nodeNumber: 3 }, 3],
  ])('with %j has %d replicas', async (row, replicas) => {
    expect(await clusterOf(row)).toMatchObject({ replicas });
  });

  it('has the region of its first node that has one if it has none', async () => {
    const nodes = [{ region: null }, { region: 'SBG' }];
    expect(await clusterOf({ region: null, nodes })).toMatchObject({ region: { code: 'SBG' } });
    expect(await clusterOf({ region: null, nodes: [{}] })).toMatchObject({ region: undefined });
  });

  it('is named by its description, else by its id', async () => {
    for (const description of ['', null, undefined])
      expect(await clusterOf({ description })).toMatchObject({ name: ID });
  });

  it.each([
    [{ unit: 'GB', value: 7 }, 7, 'Decimal'],
    [{ unit: 'GiB', value: 7.5 }, 8, 'Binary'],
    [{ unit: 'MiB', value: 4096 }, 4, 'Binary'],
    [{ unit: 'MB', value: 15_000 }, 15, 'Decimal'],
    [{ unit: 'TiB', value: 1.5 }, 1536, 'Binary'],
    [{ unit: 'TB', value: 1 }, 1000, 'Decimal'],
  ])('whose flavor has a memory of %j has machines of %d, %s', async (memory, ram, ramUnit) => {
    const flavors = [{ name: 'db1-7', specifications: { core: 2, memory } }];
    expect((await clusterOf({}, flavors))?.machine).toEqual({ name: 'db1-7', cpu: 2, ram, ramUnit });
  });

  it('has the shape that older capabilities give to its flavor, in GB', async () => {
    expect((await clusterOf({}, [{ name: 'db1-7', core: 2, memory: 7 }]))?.machine).toEqual({
      name: 'db1-7',
      cpu: 2,
      ram: 7,
      ramUnit: 'Decimal',
    });
  });

  it('whose flavor is not listed, or listed without its name, has a machine with only that name', async () => {
    expect((await clusterOf({}, [{ core: 2, memory: 7 }, null]))?.machine).toEqual({ name: 'db1-7' });
  });

  it.each([
    [{ name: 'db1-7', core: 2 }, 'specifications is missing, and so are core and memory; .*'],
    [
      { name: 'db1-7', specifications: { core: 2, memory: { unit: 'octets', value: 7 } } },
      'specifications.memory.unit must be MB, MiB, GB, GiB, TB or TiB; it is "octets"',
    ],
  ])('whose flavor is listed as %j is rejected for that', async (flavor, detail) => {
    expect(await itemsOf({}, [flavor])).toEqual([
      {
        kind: 'rejected',
        key: ID,
        reason: expect.stringMatching(`^flavor is db1-7, which is unusable in the capabilities: ${detail}$`),
      },
    ]);
  });

  it.each([
    [{ storage: { size: { unit: 'GiB', value: 80 } } }, [{ type: {}, size: 80, unit: 'GiB' }]],
    [{ storage: { size: { unit: 'MB', value: 500 }, type: null } }, [{ type: {}, size: 0.5, unit: 'GB' }]],
    [{ storage: null, disk: { size: 50, type: 'ssd' } }, [{ type: { name: 'ssd' }, size: 50, unit: 'GB' }]],
    [{ storage: null, disk: { size: null } }, undefined],
    [{ storage: null }, undefined],
  ])('with %j has the disks %j', async (row, disks) => {
    expect((await clusterOf(row))?.disks).toEqual(disks);
  });

  it.each([
    ['nodeNumber', 0, 'a whole number above 0'],
    ['createdAt', 'yesterday', 'an instant'],
    ['flavor', '', 'text of 1 to 255 characters'],
    ['status', null, 'text'],
  ])('with the %s %j is rejected with both', async (field, value, wanted) => {
    expect(await itemsOf({ [field]: value })).toEqual([
      {
        kind: 'rejected',
        key: ID,
        reason: expect.stringMatching(`^${field} must be ${wanted}.*; it is ${JSON.stringify(value)}$`),
      },
    ]);
  });

  it('without a number of nodes is rejected', async () => {
    expect(await itemsOf({ nodes: [], nodeNumber: undefined })).toEqual([
      {
        kind: 'rejected',
        key: ID,
        reason: 'nodes is missing, and so is nodeNumber; one of them must state the count of nodes; it is []',
      },
    ]);
  });

  it('that answers with the id of another is rejected', async () => {
    await using upstream = await fakeUpstream();
    const path = `${PROJECTS}/acme/database`;
    upstream.expect({ path: `${path}/service` }, { json: ['other'] });
    upstream.expect({ path: `${path}/capabilities` }, { json: { flavors: [] } });
    upstream.expect({ path: `${path}/service/other` }, { json: SERVICE });
    expect(await readClusterItems(adapter, upstream.url, { projects: 'acme' })).toEqual([
      { kind: 'rejected', key: 'other', reason: 'id is that of another service' },
    ]);
  });
});

describe('databases of OVH', () => {
  it('of another engine are not clusters, unless the option engines names it', async () => {
    expect(await itemsOf({ engine: 'kafka', flavor: 7 })).toEqual([]);
    expect(await itemsOf({ engine: 'kafka' }, [FLAVOR], { engines: 'kafka' })).toHaveLength(1);
    expect(await itemsOf({ engine: undefined })).toMatchObject([{ kind: 'rejected', key: ID }]);
  });

  it('are read from each project of the token, each a tenant', async () => {
    await using upstream = await fakeUpstream();
    upstream.expect({ path: PROJECTS }, { json: ['acme', 'acme-lab', 'empty'] });
    project(upstream, 'acme', [SERVICE]);
    project(upstream, 'acme-lab', [{ ...SERVICE, id: 'lab' }]);
    project(upstream, 'empty', []);
    const clusters = onlyClusters(await readClusterItems(adapter, upstream.url));
    expect(clusters.map(({ key, tenant }) => [key, tenant])).toEqual([
      [ID, 'acme'],
      ['lab', 'acme-lab'],
    ]);
  });

  it.each(['../../me', '', 7, null])(
    'of a project or with an id such as %j are not requested',
    async (id) => {
      for (const path of [PROJECTS, `${PROJECTS}/acme/database/service`]) {
        await using upstream = await fakeUpstream();
        upstream.expect({ path }, { json: [id] });
        const options: Record<string, string> = path === PROJECTS ? {} : { projects: 'acme' };
        await expect(readClusterItems(adapter, upstream.url, options)).rejects.toMatchObject({
          kind: 'invalid',
          message: expect.stringContaining(`${path}: [0] must be`),
        });
      }
    },
  );

  it('are not read at all if one vanished after the list', async () => {
    await using upstream = await fakeUpstream();
    const path = `${PROJECTS}/acme/database`;
    upstream.expect({ path: `${path}/service` }, { json: [ID] });
    upstream.expect({ path: `${path}/capabilities` }, { json: { flavors: [FLAVOR] } });
    const json = { class: 'Client::NotFound::ServiceNotFound', message: 'Service does not exist' };
    upstream.expect({ path: `${path}/service/${ID}` }, { status: 404, json });
    await expect(readClusterItems(adapter, upstream.url, { projects: 'acme' })).rejects.toMatchObject({
      kind: 'gone',
    });
  });
});
