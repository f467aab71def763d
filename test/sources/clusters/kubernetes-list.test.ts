import { describe, expect, it } from 'vitest';
import { adapter } from '../../../src/sources/clusters/kubernetes.ts';
import { fixedCredentials } from '../../../src/sources/credentials/provider.ts';
import { openSourceHttp } from '../../../src/sources/http/http.ts';
import type { ClusterContext, ClusterItem } from '../../../src/sources/source.ts';
import { until } from '../../support/until.ts';
import { FakeKubernetes, type FakeKubernetesOptions } from './fake-kubernetes.ts';
import { BOTH, chi, pg } from './kubernetes-objects.ts';

function contextOf(
  url: string,
  options: Readonly<Record<string, string>> = {},
  token?: string,
): ClusterContext {
  const http = openSourceHttp({ baseUrl: url, credentials: 'none', deadlineMs: 5_000, maxBytes: 1_000_000 });
  return { http, now: () => new Date(), address: { url, credentials: fixedCredentials(token) }, options };
}

async function itemsAt(...context: Parameters<typeof contextOf>): Promise<readonly ClusterItem[]> {
  return await Array.fromAsync(adapter.clusters(contextOf(...context)));
}

const keysOf = (items: readonly ClusterItem[]) =>
  items.map((item) => (item.kind === 'cluster' ? item.cluster.key : item.kind));

const start = (more: Partial<FakeKubernetesOptions> = {}) =>
  FakeKubernetes.start({ installed: BOTH, ...more });

describe('reading a Kubernetes cluster once', () => {
  it('yields the clusters of each kind in all namespaces', async () => {
    await using kube = await start({ token: 's3cret' });
    kube.put(chi('a', { namespace: 'acme' }));
    kube.put(pg('b', { namespace: 'globex' }));
    const items = await itemsAt(kube.url, {}, 's3cret');
    expect(keysOf(items)).toEqual(['uid-a/main', 'uid-b']);
    expect(items).toMatchObject([{ cluster: { tenant: 'acme' } }, { cluster: { tenant: 'globex' } }]);
    expect(kube.taken.map(({ path }) => path)).toEqual([
      '/apis/clickhouse.com/v1alpha1/clickhouseclusters',
      '/apis/clickhouse.altinity.com/v1/clickhouseinstallations',
      '/apis/postgresql.cnpg.io/v1/clusters',
    ]);
  });

  it('reads 500 objects page by page', async () => {
    await using kube = await start();
    for (let index = 0; index < 500; index++) kube.put(pg(`db-${index}`));
    const items = await itemsAt(kube.url, { kinds: 'cloud-native-pg' });
    expect(new Set(keysOf(items)).size).toBe(500);
    expect(kube.taken.map(({ query }) => query.limit)).toEqual(['100', '100', '100', '100', '100']);
  });

  it('reads an expired list again, as one page', async () => {
    await using kube = await start();
    for (let index = 0; index < 250; index++) kube.put(pg(`db-${index}`));
    kube.misbehave({ verb: 'list', status: 410, continued: true });
    const items = await itemsAt(kube.url, { kinds: 'cloud-native-pg' });
    expect(new Set(keysOf(items)).size).toBe(250);
    expect(kube.taken.map(({ query }) => [query.limit, query.continue !== undefined])).toEqual([
      ['100', false],
      ['100', true],
      [undefined, false],
    ]);
  });

  it('requests the kinds, namespaces and labels of its options', async () => {
    await using kube = await start();
    for (const namespace of ['acme', 'globex', 'initech']) kube.put(pg(namespace, { namespace }));
    const options = {
      kinds: 'cloud-native-pg',
      namespaces: 'acme, globex,acme',
      labelSelector: 'tier!=test',
    };
    expect(keysOf(await itemsAt(kube.url, options))).toEqual(['uid-acme', 'uid-globex']);
    expect(kube.taken.map(({ path, query }) => [path, query.labelSelector])).toEqual([
      ['/apis/postgresql.cnpg.io/v1/namespaces/acme/clusters', 'tier!=test'],
      ['/apis/postgresql.cnpg.io/v1/namespaces/globex/clusters', 'tier!=test'],
    ]);
  });

  it('rejects an unusable object, and yields the others', async () => {
    await using kube = await start();
    const broken = pg('broken');
    kube.put({ ...broken, spec: { storage: { size: 'large' } } });
    kube.put(pg('whole'));
    expect(await itemsAt(kube.url)).toMatchObject([
      { kind: 'rejected', key: 'uid-broken', reason: expect.stringContaining('spec.storage.size') },
      { kind: 'cluster', cluster: { key: 'uid-whole' } },
    ]);
  });

  it('skips a kind that is not installed', async () => {
    await using kube = await start({ installed: { 'postgresql.cnpg.io/v1': 'clusters' } });
    kube.put(pg('a'));
    expect(keysOf(await itemsAt(kube.url))).toEqual(['uid-a']);
  });

  it('yields nothing if a kind is installed and no object exists', async () => {
    await using kube = await start({ installed: { 'postgresql.cnpg.io/v1': 'clusters' } });
    expect(await itemsAt(kube.url)).toEqual([]);
  });

  it('fails as gone if no kind is installed: that is not an empty list', async () => {
    await using kube = await start({ installed: {} });
    await expect(itemsAt(kube.url)).rejects.toMatchObject({
      name: 'SourceError',
      kind: 'gone',
      message: expect.stringContaining(
        'clickhouseclusters.clickhouse.com, clickhouseinstallations.clickhouse.altinity.com, ' +
          'clusters.postgresql.cnpg.io',
      ),
    });
  });

  it.each([
    [401, 'misconfigured', /rejects the credentials/],
    [429, 'retry', /429/],
    [500, 'retry', /500/],
    [503, 'retry', /503/],
    [302, 'invalid', /302/],
  ] as const)('fails at a %d as %s', async (status, kind, message) => {
    await using kube = await start();
    kube.misbehave({ verb: 'list', status });
    await expect(itemsAt(kube.url)).rejects.toMatchObject({
      name: 'SourceError',
      kind,
      message: expect.stringMatching(message),
    });
  });

  it('fails at a 403 for an installed kind as misconfigured, with the missing right', async () => {
    await using kube = await start({ forbidden: ['clickhouse.altinity.com/v1'] });
    kube.put(pg('a'));
    await expect(itemsAt(kube.url)).rejects.toMatchObject({
      name: 'SourceError',
      kind: 'misconfigured',
      message: expect.stringMatching(/to list clickhouseinstallations\.clickhouse\.altinity\.com/),
    });
  });

  it('skips a kind without rights if it is not installed', async () => {
    await using kube = await start({ forbidden: ['clickhouse.com/v1alpha1'] });
    kube.put(pg('a'));
    expect(keysOf(await itemsAt(kube.url))).toEqual(['uid-a']);
  });

  it('fails at a 403 if the installed kinds are unknown', async () => {
    await using kube = await start({ forbidden: ['clickhouse.com/v1alpha1', '*'] });
    await expect(itemsAt(kube.url)).rejects.toMatchObject({
      kind: 'misconfigured',
      message: expect.stringMatching(/to list clickhouseclusters\.clickhouse\.com .*option kinds/),
    });
  });

  it('passes on how long the server wants no requests', async () => {
    await using kube = await start();
    kube.misbehave({ verb: 'list', status: 429, headers: { 'retry-after': '7' } });
    await expect(itemsAt(kube.url)).rejects.toMatchObject({
      kind: 'retry',
      retryAfterMs: 7_000,
      limitsAll: true,
    });
  });

  it('fails temporarily if the connection breaks, also between two pages', async () => {
    await using kube = await start();
    for (let index = 0; index < 101; index++) kube.put(pg(`db-${index}`));
    kube.misbehave({ verb: 'list', status: 0, cut: true, continued: true });
    await expect(itemsAt(kube.url, { kinds: 'cloud-native-pg' })).rejects.toMatchObject({ kind: 'retry' });
  });

  it('ends with its run, also while the server is silent, and leaves no connection', async () => {
    await using kube = await start();
    for (let index = 0; index < 101; index++) kube.put(pg(`db-${index}`));
    kube.misbehave({ verb: 'list', status: 0, silent: true, continued: true });
    const run = new AbortController();
    const context = { ...contextOf(kube.url, { kinds: 'cloud-native-pg' }), signal: run.signal };
    const reading = Array.fromAsync(adapter.clusters(context));
    const reason = new Error('the worker stops');
    const ended = expect(reading).rejects.toBe(reason);
    await until(() => kube.count('list') === 2);
    run.abort(reason);
    await ended;
    await until(() => kube.connections === 0);
  });

  it.each([
    [
      { kinds: 'mysql' },
      /kinds must be some of click-house-cluster, click-house-installation, cloud-native-pg/,
    ],
    [{ namespaces: 'a b' }, /namespaces must be names/],
    [{ organizationLabel: 'no key' }, /organizationLabel must be the key of a label/],
  ] as const)('refuses the options %j', async (options, message) => {
    await expect(itemsAt('https://127.0.0.1:1', options)).rejects.toMatchObject({
      kind: 'misconfigured',
      message: expect.stringMatching(message),
    });
  });

  it('accepts only options with known names', () => {
    expect(adapter.options?.safeParse({ organizationLabel: 'team' }).success).toBe(true);
    expect(adapter.options?.safeParse({ organisationLabel: 'team' }).success).toBe(false);
  });

  it('watches the objects that it reads', async () => {
    await using kube = await start();
    kube.put(chi('a'));
    const ending = new AbortController();
    const states = adapter.watch?.({ ...contextOf(kube.url), signal: ending.signal });
    const seen: string[][] = [];
    for await (const items of states ?? []) {
      seen.push(keysOf(items));
      if (seen.length === 1) kube.put(pg('b'));
      else ending.abort();
    }
    expect(seen).toEqual([['uid-a/main'], ['uid-a/main', 'uid-b']]);
  });
});
