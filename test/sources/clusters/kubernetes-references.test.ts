import { describe, expect, it } from 'vitest';
import { adapter } from '../../../src/sources/clusters/kubernetes.ts';
import { NO_CREDENTIALS } from '../../../src/sources/credentials/provider.ts';
import { openSourceHttp } from '../../../src/sources/http/http.ts';
import { until } from '../../support/until.ts';
import { FakeKubernetes, type KubernetesObject } from './fake-kubernetes.ts';
import { chi, read } from './kubernetes-objects.ts';
import { Watching } from './kubernetes-watching.ts';

const API = 'clickhouse.altinity.com/v1';
const ALTINITY = { [API]: 'clickhouseinstallations' };
const pathOf = (name: string, namespace = 'acme') =>
  `/apis/${API}/namespaces/${namespace}/clickhouseinstallationtemplates/${name}`;

const claim = (name: string, storage: string) => ({ name, spec: { resources: { requests: { storage } } } });
const pod = (name: string, cpu: string, memory: string) => ({
  name,
  spec: { containers: [{ name: 'clickhouse', resources: { requests: { cpu, memory } } }] },
});
const USUAL = {
  spec: {
    defaults: { templates: { podTemplate: 'usual', dataVolumeClaimTemplate: 'data' } },
    templates: {
      podTemplates: [pod('usual', '4', '16Gi')],
      volumeClaimTemplates: [claim('data', '100Gi'), claim('logs', '10Gi')],
    },
  },
};
const FOUR = { cpu: 4, ram: 16, ramUnit: 'Binary' };
const DATA = [{ type: {}, size: 100, unit: 'GiB' }];

/** An installation that uses these templates, with other parts of its spec. */
function using(name: string, useTemplates: readonly object[], spec: object = {}): KubernetesObject {
  const plain = chi(name);
  return { ...plain, spec: { ...(plain.spec as object), useTemplates, ...spec } };
}

async function itemsOf(kube: FakeKubernetes) {
  const http = openSourceHttp({ baseUrl: kube.url, credentials: 'none', deadlineMs: 5_000, maxBytes: 1e6 });
  const context = {
    http,
    now: () => new Date(),
    address: { url: kube.url, credentials: NO_CREDENTIALS },
    options: {},
  };
  return await Array.fromAsync(adapter.clusters(context));
}

function clusterOf(object: unknown, ...templates: readonly unknown[]) {
  const found = templates.map((template) => ({ object: template }));
  const [item] = read(object, {}, found);
  return item?.kind === 'cluster' ? item.cluster : expect.unreachable(JSON.stringify(item));
}

describe('a ClickHouseInstallation that uses templates', () => {
  it('has their machine and disks, each requested once', async () => {
    await using kube = await FakeKubernetes.start({ installed: ALTINITY });
    kube.single(pathOf('usual', 'shared'), USUAL);
    kube.put(using('a', [{ name: 'usual', namespace: 'shared' }]));
    kube.put(using('b', [{ name: 'usual', namespace: 'shared', useType: 'merge' }]));
    kube.put(chi('c'));
    expect(await itemsOf(kube)).toMatchObject([
      { cluster: { name: 'a', machine: FOUR, disks: DATA } },
      { cluster: { name: 'b', machine: FOUR, disks: DATA } },
      { cluster: { name: 'c', disks: [] } },
    ]);
    expect(kube.count('get')).toBe(1);
  });

  it.each([
    [404, /its template acme\/usual does not exist; create it/],
    [
      403,
      /its template acme\/usual may not be read; allow the credentials to get clickhouseinstallationtemplates\.clickhouse\.altinity\.com$/,
    ],
  ])('is quarantined if one answers %d, and the others are not', async (status, reason) => {
    await using kube = await FakeKubernetes.start({ installed: ALTINITY });
    kube.single(pathOf('usual'), status);
    kube.put(using('a', [{ name: 'usual' }]));
    kube.put(chi('b'));
    const [waiting, other] = await itemsOf(kube);
    expect(waiting).toEqual({
      kind: 'rejected',
      key: 'uid-a/main',
      waits: true,
      reason: expect.stringMatching(reason),
    });
    expect(other).toMatchObject({ kind: 'cluster' });
  });

  it('fails temporarily if one is unavailable', async () => {
    await using kube = await FakeKubernetes.start({ installed: ALTINITY });
    kube.single(pathOf('usual'), 503);
    kube.put(using('a', [{ name: 'usual' }]));
    await expect(itemsOf(kube)).rejects.toMatchObject({ name: 'SourceError', kind: 'retry' });
  });

  it.each([{}, { name: '' }, { name: '..' }, { name: 'a/b' }, { name: 7 }])(
    'is quarantined if one has an invalid name, without a request: %j',
    async (template) => {
      await using kube = await FakeKubernetes.start({ installed: ALTINITY });
      kube.put(using('a', [template]));
      expect(await itemsOf(kube)).toMatchObject([{ kind: 'rejected', key: 'uid-a/main', waits: true }]);
      expect(kube.count('get')).toBe(0);
    },
  );

  it('needs no requests if the operator has resolved them', async () => {
    await using kube = await FakeKubernetes.start({ installed: ALTINITY });
    const clusters = [{ name: 'main', layout: { replicasCount: 1 } }];
    const status = {
      status: 'Completed',
      normalizedCompleted: { spec: { ...USUAL.spec, configuration: { clusters } } },
    };
    kube.put({ ...using('a', [{ name: 'usual' }]), status });
    expect(await itemsOf(kube)).toMatchObject([{ cluster: { machine: FOUR, disks: DATA } }]);
    expect(kube.count('get')).toBe(0);
  });

  it('includes one whose templates apply automatically', async () => {
    await using kube = await FakeKubernetes.start({ installed: ALTINITY });
    kube.single(pathOf('auto', 'operator'), USUAL);
    const status = { status: 'Completed', usedTemplates: [{ name: 'auto', namespace: 'operator' }] };
    kube.put({ ...chi('a'), status });
    expect(await itemsOf(kube)).toMatchObject([{ cluster: { machine: FOUR, disks: DATA } }]);
  });

  it('has priority over its templates, and a later one over an earlier', () => {
    const own = { templates: { podTemplates: [pod('usual', '8', '')] } };
    const more = { spec: { templates: { volumeClaimTemplates: [claim('data', '500Gi')] } } };
    const object = using('a', [{ name: 'usual' }, { name: 'more' }], own);
    expect(clusterOf(object, USUAL, more)).toMatchObject({
      machine: { cpu: 8, ram: 16, ramUnit: 'Binary' },
      disks: [{ size: 500 }],
    });
  });

  it('may leave a part to a template', () => {
    const volumeClaimTemplates = [{ name: 'data', spec: { storageClassName: 'io2' } }];
    const object = using('a', [{ name: 'usual' }], { templates: { volumeClaimTemplates } });
    expect(clusterOf(object, USUAL).disks).toEqual([{ type: { name: 'io2' }, size: 100, unit: 'GiB' }]);
  });

  it('is not made of a template that selects others', () => {
    const select = (chiSelector: object) => ({ spec: { ...USUAL.spec, templating: { chiSelector } } });
    const object = using('a', [{ name: 'usual' }]);
    const labelled = { ...object, metadata: { ...object.metadata, labels: { tier: 'gold' } } };
    expect(clusterOf(labelled, select({ tier: 'gold' })).machine).toEqual(FOUR);
    expect(clusterOf(labelled, select({ tier: 'silver' }))).toMatchObject({ machine: undefined });
  });

  it('has the clusters of its template by default', () => {
    const configuration = { clusters: [{ name: 'main', layout: { shardsCount: 3 } }] };
    const template = { spec: { ...USUAL.spec, configuration } };
    const bare = using('a', [{ name: 'usual' }], { configuration: undefined });
    expect(clusterOf(bare, template)).toMatchObject({ key: 'uid-a/main', shards: 3 });
    expect(clusterOf(using('a', [{ name: 'usual' }]), template)).toMatchObject({ shards: 1 });
  });

  it.each([null, 'what', {}, { spec: null }, { spec: { templates: 7 } }])(
    'is unchanged by an empty template: %j',
    (template) => {
      const own = { defaults: USUAL.spec.defaults, templates: USUAL.spec.templates };
      expect(clusterOf(using('a', [{ name: 'usual' }], own), template)).toMatchObject({
        machine: FOUR,
        disks: DATA,
      });
    },
  );
});

describe('watching a ClickHouseInstallation that uses templates', () => {
  it('reads its templates again with each change', async () => {
    await using kube = await FakeKubernetes.start({ installed: ALTINITY });
    kube.put(using('a', [{ name: 'usual' }]));
    await using watching = new Watching(kube);
    await watching.expected('rejected');
    await kube.watches(1);
    kube.single(pathOf('usual'), USUAL);
    kube.put(chi('b'));
    await watching.expected('a×1', 'b×1');
    expect(watching.states).toEqual([['rejected'], ['a×1', 'b×1']]);
  });

  it('reports no change of unread fields', async () => {
    await using kube = await FakeKubernetes.start({ installed: ALTINITY });
    kube.single(pathOf('usual'), USUAL);
    const object = using('a', [{ name: 'usual' }]);
    kube.put(object);
    await using watching = new Watching(kube);
    await kube.watches(1);
    kube.put({ ...object, status: { ...(object.status as object), pods: ['touched'] } });
    kube.put(chi('b'));
    await watching.expected('a×1', 'b×1');
    expect(watching.states).toEqual([['a×1'], ['a×1', 'b×1']]);
  });

  it('continues while a template is temporarily unavailable', async () => {
    await using kube = await FakeKubernetes.start({ installed: ALTINITY });
    kube.single(pathOf('usual'), USUAL);
    kube.put(using('a', [{ name: 'usual' }]));
    await using watching = new Watching(kube);
    await watching.expected('a×1');
    await kube.watches(1);
    kube.single(pathOf('usual'), 503);
    const requestsBefore = kube.count('get');
    kube.put(chi('b'));
    await until(() => kube.count('get') > requestsBefore + 1);
    kube.single(pathOf('usual'), USUAL);
    await watching.expected('a×1', 'b×1');
    expect(watching.failure).toBeUndefined();
  });
});
