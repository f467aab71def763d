import { mkdtempDisposable, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { adapter } from '../../../src/sources/clusters/json.ts';
import { fixedCredentials, NO_CREDENTIALS } from '../../../src/sources/credentials/provider.ts';
import { openSourceHttp } from '../../../src/sources/http/http.ts';
import type { ClusterItem } from '../../../src/sources/source.ts';
import { fixture } from '../../conformance/catalogue-case.ts';
import { clusterCase } from '../../conformance/clusters-json.ts';
import { changed, without } from '../../conformance/json-changes.ts';
import { fakeUpstream } from '../../support/fake-upstream.ts';

const FIXTURE = 'clusters/clusters.json';
const both = fixture(FIXTURE);

async function itemsAt(baseUrl: string, token?: string): Promise<ClusterItem[]> {
  const http = openSourceHttp({
    baseUrl,
    token,
    credentials: adapter.credentials,
    deadlineMs: 5_000,
    maxBytes: 100_000,
  });
  const items: ClusterItem[] = [];
  const now = () => new Date('2026-03-01T00:00:00Z');
  for await (const item of adapter.clusters({
    http,
    now,
    address: { url: baseUrl, credentials: fixedCredentials(token) },
  }))
    items.push(item);
  return items;
}

async function itemsOf(document: unknown): Promise<ClusterItem[]> {
  await using upstream = await fakeUpstream();
  upstream.expect({ path: '/clusters.json' }, { json: document });
  return await itemsAt(`${upstream.url}/clusters.json`);
}

const keysOf = (items: readonly ClusterItem[]) =>
  items.map((item) =>
    item.kind === 'cluster' ? item.cluster.key : `${item.kind} ${'key' in item ? item.key : ''}`,
  );

describe('clusters from a JSON document', () => {
  const expected = clusterCase.clusters.map((cluster): ClusterItem => ({ kind: 'cluster', cluster }));

  it('are read from a list, with each value unchanged', async () => {
    expect(await itemsOf(both)).toEqual(expected);
  });

  it('are read from a file', async () => {
    const path = fileURLToPath(new URL(`../../fixtures/${FIXTURE}`, import.meta.url));
    expect(await itemsAt(path)).toEqual(expected);
    expect(await itemsAt(`file://${path}`)).toEqual(expected);
  });

  it('are read from an object that states another currency for the disks', async () => {
    const [first] = await itemsOf({ clusters: both, currency: 'EUR' });
    expect(
      first?.kind === 'cluster' && first.cluster.disks?.map((disk) => disk.type.price?.currency),
    ).toEqual(['EUR', 'EUR']);
  });

  it('are read page by page, with the token, along Link headers', async () => {
    await using upstream = await fakeUpstream();
    const headers = { authorization: 'Bearer tok' };
    const [first, second] = both as object[];
    upstream.expect(
      { path: '/api/clusters', headers },
      { json: [first], headers: { link: '</api/clusters?page=2>; rel="next"' } },
    );
    upstream.expect(
      { path: '/api/clusters', query: { page: '2' }, headers },
      { json: { clusters: [second] }, headers: { link: `<${upstream.url}/api/clusters>; rel="prev"` } },
    );
    expect(await itemsAt(`${upstream.url}/api/clusters`, 'tok')).toEqual(expected);
  });

  it('may be absent: the guard decides whether they may disappear', async () => {
    expect(await itemsOf([])).toEqual([]);
  });

  it('have the stated key, else the slug, else the name', async () => {
    const [first] = both as object[];
    expect(keysOf(await itemsOf([{ ...first, id: 42 }]))).toEqual(['42']);
    expect(keysOf(await itemsOf([{ ...first, id: null }]))).toEqual(['cluster-test']);
    expect(keysOf(await itemsOf([{ ...first, id: null, slug: null }]))).toEqual(['Cluster Test']);
  });

  it('are one if the same row comes twice, as on pages that shift during the read', async () => {
    expect(keysOf(await itemsOf([...(both as object[]), ...(both as object[])]))).toEqual(keysOf(expected));
  });

  it('are rejected if two different ones have one key, in any order, but not in two organizations', async () => {
    const [first] = both as object[];
    const other = { ...first, status: 'Stopped' };
    for (const rows of [
      [first, other],
      [other, first],
    ]) {
      expect(await itemsOf(rows)).toEqual([
        {
          kind: 'rejected',
          key: '5b0c7a0e-1f2d-4a52-9a62-3f8d2d3f9a10',
          organization: 'acme',
          reason: 'another cluster of the organization has the same key; give each cluster its own id',
        },
      ]);
    }
    expect(keysOf(await itemsOf([first, { ...other, organization: 'globex' }]))).toHaveLength(2);
  });
});

describe('a default in the source’s entry', () => {
  it.each(['organization', 'region', 'provider', 'machine', 'user', 'disks'])(
    'is %s: a row without it is complete as far as possible',
    async (field) => {
      const [before] = await itemsOf(both);
      const [after] = await itemsOf(without(both, `/0/${field}`));
      if (before?.kind !== 'cluster' || after?.kind !== 'cluster')
        return expect.unreachable('both are usable');
      const { [field as keyof typeof before.cluster]: _, ...rest } = before.cluster;
      expect(after.cluster).toEqual(rest);
      expect(after.cluster).toMatchObject({ [field]: undefined });
      expect(await itemsOf(changed(both, `/0/${field}`, () => null))).toHaveLength(2);
    },
  );

  it('is the shape of a named machine', async () => {
    const [first] = await itemsOf(changed(both, '/0/machine', () => ({ name: 'cx32' })));
    expect(first).toMatchObject({ kind: 'cluster', cluster: { machine: { name: 'cx32' } } });
    const [nothing] = await itemsOf([...(changed(both, '/0/machine', () => ({})) as object[])]);
    expect(nothing).toMatchObject({
      kind: 'rejected',
      reason: expect.stringContaining('machine.cpu is missing'),
    });
  });
});

describe('an unusable row', () => {
  it.each([
    'name',
    'region/code',
    'region/name',
    'provider/name',
    'status',
    'shards',
    'replicas',
    'machine/cpu',
    'machine/ram',
    'machine/ram_unit',
    'disks/0/type',
    'disks/0/type/name',
    'disks/0/type/price',
    'disks/0/type/unit',
    'disks/0/size',
    'disks/0/unit',
    'disks/0/autoscaling',
    'created_at',
  ])('without %s is rejected by that name, and the others are read', async (field) => {
    const items = await itemsOf(without(both, `/0/${field}`));
    const path = field.replace(/\/(\d)\//, '[$1].').replaceAll('/', '.');
    expect(items).toContainEqual({
      kind: 'rejected',
      key: '5b0c7a0e-1f2d-4a52-9a62-3f8d2d3f9a10',
      organization: 'acme',
      reason: expect.stringMatching(new RegExp(`^${RegExp.escape(path)} .*(missing|must be|undefined)`)),
    });
    expect(keysOf(items)).toContain('Ereignisse – Süd');
  });

  it.each([
    ['organization', 'a/b'],
    ['slug', '..'],
    ['slug', 'white space'],
    ['name', ''],
    ['name', 'a\u0000b'],
    ['status', ''],
    ['shards', -1],
    ['replicas', 1.5],
    ['replicas', 2 ** 31],
    ['machine/cpu', 0],
    ['machine/ram', -8],
    ['machine/ram_unit', 'GB'],
    ['disks/0/size', 0],
    ['disks/0/unit', 'MB'],
    ['disks/0/type/price', -0.1],
    ['disks/0/type/price', 'free'],
    ['disks/0/autoscaling', 'no'],
    ['user/first_name', 7],
    ['created_at', '2022-02-30T10:11:26'],
    ['created_at', 1644833486],
    ['id', {}],
  ] as const)('with the %s %j is rejected with both', async (field, value) => {
    const items = await itemsOf(changed(both, `/0/${field}`, () => value));
    const path = field.replace(/\/(\d)\//, '[$1].').replaceAll('/', '.');
    const rejected = items.filter((item) => item.kind === 'rejected');
    expect(rejected).toHaveLength(1);
    expect(rejected[0]?.reason).toContain(path);
    expect(rejected[0]?.reason).toContain(`it is ${JSON.stringify(value)}`);
    expect(keysOf(items)).toContain('Ereignisse – Süd');
  });

  it('without any name is identified by its place', async () => {
    expect(keysOf(await itemsOf([...(both as object[]), null]))).toContain('rejected cluster 3');
  });
});

describe('a document without clusters', () => {
  it.each([
    ['an object without them', { items: [] }, 'clusters is missing'],
    ['text', 'hello', 'the payload expected object'],
    ['an unreadable currency', { clusters: [], currency: 'dollars' }, 'currency must be a currency code'],
  ])('is invalid: %s', async (_, document, detail) => {
    await expect(itemsOf(document)).rejects.toMatchObject({
      kind: 'invalid',
      message: expect.stringContaining(detail),
    });
  });

  it('is retried if it is a truncated file', async () => {
    await using folder = await mkdtempDisposable(join(tmpdir(), 'fleetbook-clusters-'));
    const path = join(folder.path, 'clusters.json');
    await writeFile(path, JSON.stringify(both).slice(0, 400));
    await expect(itemsAt(path)).rejects.toMatchObject({
      kind: 'retry',
      message: expect.stringContaining('JSON that ends too early'),
    });
  });
});

describe('pages of clusters', () => {
  it('are retried as a whole if a later one fails, and nothing is reported', async () => {
    await using upstream = await fakeUpstream();
    upstream.expect({ path: '/clusters' }, { json: both, headers: { link: '<?page=2>; rel=next' } });
    upstream.expect(
      { path: '/clusters', query: { page: '2' } },
      { status: 503, headers: { 'retry-after': '3' } },
    );
    const http = openSourceHttp({
      baseUrl: `${upstream.url}/clusters`,
      credentials: 'none',
      deadlineMs: 5_000,
      maxBytes: 100_000,
    });
    const address = { url: upstream.url, credentials: NO_CREDENTIALS };
    const first = adapter
      .clusters({ http, now: () => new Date(), address })
      [Symbol.asyncIterator]()
      .next();
    await expect(first).rejects.toMatchObject({ kind: 'retry', retryAfterMs: 3_000 });
  });

  it('are invalid if they lead in a circle or to another origin', async () => {
    for (const [link, detail] of [
      ['<>; rel=next', '/clusters repeats a page'],
      ['<http://127.0.0.1:1/clusters>; rel=next', 'links to another origin'],
      ['<http://[bad>; rel=next', 'no URL'],
    ]) {
      await using upstream = await fakeUpstream();
      upstream.expect({ path: '/clusters' }, { json: both, headers: { link: String(link) } });
      const reading = itemsAt(`${upstream.url}/clusters`);
      await expect(reading).rejects.toMatchObject({
        kind: 'invalid',
        message: expect.stringContaining(String(detail)),
      });
    }
  });
});

describe('a list of clusters requested with its validator', () => {
  const read = async (url: string, etag: string): Promise<string[]> => {
    const validators = new Map([[url, { url, etag }]]);
    const limits = { deadlineMs: 5_000, maxBytes: 100_000 };
    const http = openSourceHttp({ baseUrl: url, credentials: 'none', validators, ...limits });
    const kinds: string[] = [];
    const address = { url, credentials: NO_CREDENTIALS };
    for await (const { kind } of adapter.clusters({ http, now: () => new Date(), address })) kinds.push(kind);
    return kinds;
  };

  it('is unmodified as a whole if it has one page', async () => {
    await using upstream = await fakeUpstream();
    upstream.expect({ path: '/clusters', headers: { 'if-none-match': '"1"' } }, { status: 304 });
    expect(await read(`${upstream.url}/clusters`, '"1"')).toEqual(['unmodified']);
    upstream.expect({ path: '/clusters' }, { json: [], headers: { etag: '"2"' } });
    expect(await read(`${upstream.url}/clusters`, '"1"')).toEqual(['validator']);
  });

  it('is read as a whole, without a validator, if its unmodified first page leads to another', async () => {
    await using upstream = await fakeUpstream();
    const headers = { link: '<?page=2>; rel="next"', etag: '"1"' };
    upstream.expect({ path: '/clusters', headers: { 'if-none-match': '"1"' } }, { status: 304, headers });
    upstream.expect({ path: '/clusters', headers: { 'if-none-match': null } }, { json: [{}], headers });
    upstream.expect({ path: '/clusters', query: { page: '2' } }, { json: [], headers: { etag: '"p2"' } });
    expect(await read(`${upstream.url}/clusters`, '"1"')).toEqual(['rejected']);
  });
});
