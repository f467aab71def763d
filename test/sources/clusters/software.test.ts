/** Engine and version as control planes state them, also in recorded answers. */
import { describe, expect, it } from 'vitest';
import type { Software } from '../../../src/domain/engine.ts';
import { versionOfImage, versionOfTag } from '../../../src/sources/cluster-fields.ts';
import { adapter as aiven } from '../../../src/sources/clusters/aiven.ts';
import { adapter as digitalocean } from '../../../src/sources/clusters/digitalocean.ts';
import { adapter as json } from '../../../src/sources/clusters/json.ts';
import { adapter as scaleway } from '../../../src/sources/clusters/scaleway.ts';
import { adapter as upcloud } from '../../../src/sources/clusters/upcloud.ts';
import { fakeUpstream } from '../../support/fake-upstream.ts';
import { needsRecorded, RECORDED } from '../../support/payloads.ts';
import { CHC, CHI, having, only, PG } from './kubernetes-objects.ts';
import { onlyClusters, readClusterItems } from './read.ts';

const DATABASES = { path: '/v2/databases', query: { page: '1', per_page: '200' } };

type Json = ReturnType<typeof JSON.parse>;

const softwareOf = (items: Awaited<ReturnType<typeof readClusterItems>>) =>
  onlyClusters(items).map(({ software }) => software);

async function inDigitalOcean(row: object): Promise<Software | undefined> {
  await using upstream = await fakeUpstream();
  const database = {
    ...{ id: 'one', name: 'one', engine: 'pg', num_nodes: 1, region: 'fra1', status: 'online' },
    ...{ created_at: '2024-03-05T09:17:42Z', size: 'db-s-2vcpu-4gb', ...row },
  };
  upstream.expect(DATABASES, { json: { databases: [database] } });
  return softwareOf(await readClusterItems(digitalocean, upstream.url))[0];
}

describe('an unusable engine, version or end', () => {
  it('is unknown, and the cluster is not lost', async () => {
    for (const version of [null, 17, '', 'x'.repeat(101), { major: 17 }, ['17'], 'a\nb'])
      expect(await inDigitalOcean({ version })).toEqual({ engine: 'postgresql' });
    for (const version_end_of_life of [null, 0, '', '2027-02-30', 'soon', { at: '2027-01-01' }])
      expect(await inDigitalOcean({ version: '17', version_end_of_life })).toEqual({
        engine: 'postgresql',
        version: '17',
      });
  });

  it('of a feed is unknown too, and a new word is stored as stated', async () => {
    await using upstream = await fakeUpstream();
    const row = (id: number, fields: object) => ({
      ...{ id, name: `c${id}`, status: 'Active', shards: 1, replicas: 1 },
      ...{ created_at: '2024-03-05T09:17:42Z', ...fields },
    });
    const rows = [
      row(1, { engine: 'FoundationDB', version: '7.3', end_of_life: '2027-01-31' }),
      row(2, { engine: 7, version: true, end_of_life: 'x' }),
      row(3, {}),
    ];
    upstream.expect({ path: '/' }, { json: rows });
    expect(softwareOf(await readClusterItems(json, upstream.url))).toEqual([
      { engine: 'FoundationDB', version: '7.3', endOfLife: '2027-01-31' },
      undefined,
      undefined,
    ]);
  });
});

describe('the version of an image', () => {
  it.each([
    ['ghcr.io/cloudnative-pg/postgresql:18.1-system-trixie', '18.1'],
    ['postgres:17', '17'],
    ['registry:5000/pg/postgresql:16.4@sha256:0a1b', '16.4'],
    ['altinity/clickhouse-server:24.8.14.10459.altinitystable', '24.8.14.10459'],
    ['clickhouse/clickhouse-server:v25.3', '25.3'],
    ['clickhouse/clickhouse-server:latest', undefined],
    ['clickhouse/clickhouse-server:25stable', undefined],
    ['postgres@sha256:17aa', undefined],
    ['registry:5000/postgres', undefined],
    ['', undefined],
    [null, undefined],
  ])('%s is %s', (image, version) => {
    expect(versionOfImage(image)).toBe(version);
  });

  it('is read from a tag alone', () => {
    expect(versionOfTag('25.8-alpine')).toBe('25.8');
    expect(versionOfTag(undefined)).toBeUndefined();
  });
});

describe('a cluster of an operator', () => {
  const versionOf = (object: Json) => only(object).software?.version;

  it('has the version of the image that runs, else of the wanted one', () => {
    const status = { image: 'ghcr.io/cloudnative-pg/postgresql:17.6' };
    expect(versionOf(having(PG, '/status', status))).toBe('17.6');
    const data = { image: 'ghcr.io/cloudnative-pg/postgresql:16.9-bookworm', majorVersion: 16 };
    expect(versionOf(having(PG, '/status', { ...status, pgDataImageInfo: data }))).toBe('16.9');
    expect(only(PG).software).toEqual({ engine: 'postgresql', version: '18.0' });
  });

  it('has the major version of its catalogue, and none for a digest', () => {
    const { imageName: _, ...spec } = (PG as Json).spec;
    const catalogue = { ...spec, imageCatalogRef: { kind: 'ImageCatalog', name: 'pg', major: 16 } };
    expect(versionOf(having(PG, '/spec', catalogue))).toBe('16');
    expect(only(having(PG, '/spec', { ...spec, imageName: 'pg@sha256:18' })).software).toEqual({
      engine: 'postgresql',
    });
  });

  it('of ClickHouse has the version of its own container', () => {
    expect(only(CHI).software).toEqual({ engine: 'clickhouse', version: '25.8' });
    expect(only(CHC).software).toEqual({ engine: 'clickhouse', version: '25.8' });
    const latest = having(CHC, '/spec/containerTemplate/image', { tag: 'latest' });
    expect(only(latest).software).toEqual({ engine: 'clickhouse' });
  });
});

const recorded = (name: string): Json => RECORDED.json(`next/clusters/${name}`);

describe('recorded clusters', needsRecorded, () => {
  it('of DigitalOcean’s documentation have engine, version and end', async () => {
    await using upstream = await fakeUpstream();
    upstream.expect(DATABASES, { json: recorded('digitalocean-databases-list.json') });
    const found = softwareOf(await readClusterItems(digitalocean, upstream.url));
    expect(found[0]).toEqual({ engine: 'postgresql', version: '10', endOfLife: '2023-11-09' });
  });

  it('of Aiven have their type, and no version where the answer has none', async () => {
    await using upstream = await fakeUpstream();
    const path = '/v1/project/acme/service';
    upstream.expect({ path }, { json: recorded('aiven-list-services-doc-example.json') });
    const items = await readClusterItems(aiven, upstream.url, { projects: 'acme' });
    expect(items.length).toBeGreaterThan(0);
    for (const item of items)
      if (item.kind === 'cluster') expect(item.cluster.software).toEqual({ engine: 'postgresql' });
  });

  it('of UpCloud have the running version, and none before they run', async () => {
    await using upstream = await fakeUpstream();
    const rows = [...recorded('upcloud-database-list.json'), recorded('upcloud-database-get.json')];
    const unique = rows.map((row: Json, index: number) => ({ ...row, uuid: `id-${index}` }));
    upstream.expect(
      { path: '/1.3/database', query: { limit: '100', offset: '0' } },
      { json: unique, headers: { 'upcloud-total-count': String(unique.length) } },
    );
    const found = softwareOf(await readClusterItems(upcloud, upstream.url));
    expect(found.at(-1)).toEqual({ engine: 'postgresql', version: '15.5' });
    expect(found[0]).toEqual({ engine: 'postgresql' });
  });

  it('of Scaleway have engine and version, in one text or in two fields', async () => {
    await using upstream = await fakeUpstream();
    const pages: Record<string, Json> = {
      '/rdb/v1/regions/fr-par/instances': recorded('scaleway-rdb-instances.json'),
      '/mongodb/v1/regions/fr-par/instances': recorded('scaleway-mongodb-instances.json'),
      '/redis/v1/zones/fr-par-1/clusters': {
        clusters: [recorded('scaleway-redis-cluster.json')],
        total_count: 1,
      },
    };
    const types = { node_types: [], total_count: 0 };
    for (const [path, page] of Object.entries(pages)) {
      const rows: Json[] = page.instances ?? page.clusters;
      const query = { page: '1', page_size: '100' };
      upstream.expect({ path, query }, { json: { total_count: rows.length, ...page } });
      const all = path.includes('mongodb') ? 'include_disabled' : 'include_disabled_types';
      upstream.expect(
        { path: path.replace(/\/\w+$/, '/node-types'), query: { ...query, [all]: 'true' } },
        { json: types },
      );
    }
    const options = { rdb: 'fr-par', mongodb: 'fr-par', redis: 'fr-par-1' };
    const items = await readClusterItems(scaleway, upstream.url, options);
    expect(new Set(softwareOf(items).map((software) => JSON.stringify(software)))).toEqual(
      new Set([
        JSON.stringify({ engine: 'postgresql', version: '15' }),
        JSON.stringify({ engine: 'mongodb', version: '7.0' }),
        JSON.stringify({ engine: 'redis', version: '8.4.0' }),
      ]),
    );
  });
});
