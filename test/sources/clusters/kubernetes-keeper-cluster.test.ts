import { describe, expect, it } from 'vitest';
import { adapter } from '../../../src/sources/clusters/kubernetes.ts';
import { fixedCredentials } from '../../../src/sources/credentials/provider.ts';
import { openSourceHttp } from '../../../src/sources/http/http.ts';
import { fixture, type Json } from '../../conformance/catalogue-case.ts';
import { clusterCase } from '../../conformance/clusters-kubernetes.ts';
import { changed, without } from '../../conformance/json-changes.ts';
import { FakeKubernetes, type KubernetesObject } from './fake-kubernetes.ts';
import { having, only, read } from './kubernetes-objects.ts';

const KEEPER = fixture('kubernetes/keeper-cluster.json');
const UID = '7e2f0a52-7c1e-4f86-b0a9-3e5c7a9d4444';
const INSTALLED = { 'clickhouse.com/v1alpha1': 'keeperclusters' };

async function itemsAt(url: string, options: Readonly<Record<string, string>>) {
  const http = openSourceHttp({ baseUrl: url, credentials: 'none', deadlineMs: 5_000, maxBytes: 1_000_000 });
  const address = { url, credentials: fixedCredentials(undefined) };
  return await Array.fromAsync(adapter.clusters({ http, now: () => new Date(), address, options }));
}

describe('a KeeperCluster', () => {
  it('is a cluster of one shard with its replicas, machine and disk', () => {
    expect(only(KEEPER)).toMatchObject({ key: UID, shards: 1, replicas: 3 });
    expect(clusterCase.clusters).toContainEqual(only(KEEPER));
  });

  it('has three replicas by default', () => {
    expect(only(without(KEEPER, '/spec/replicas'))).toMatchObject({ shards: 1, replicas: 3 });
  });

  it.each<[string, Json, string]>([
    ['Degraded while a replica is not ready', { readyReplicas: 2 }, 'Degraded'],
    ['Creating before it was first ready', { currentRevision: '', conditions: [] }, 'Creating'],
    [
      'the condition’s reason',
      { readyReplicas: 1, conditions: [{ type: 'Ready', status: 'False', reason: 'NotEnoughFollowers' }] },
      'NotEnoughFollowers',
    ],
  ])('is %s', (_, status, expected) => {
    const whole = changed(
      KEEPER,
      '/status',
      (given) => ({ ...(given as object), ...(status as object) }) as Json,
    );
    expect(only(whole).status).toBe(expected);
  });

  it('is Stopped without replicas, and Terminating once it is deleted', () => {
    expect(only(having(KEEPER, '/spec/replicas', 0)).status).toBe('Stopped');
    const deleted = having(KEEPER, '/metadata/deletionTimestamp', '2026-05-01T00:00:00Z');
    expect(only(deleted).status).toBe('Terminating');
  });

  it('has no disks without a claim', () => {
    expect(only(without(KEEPER, '/spec/dataVolumeClaimSpec')).disks).toEqual([]);
  });

  it('is rejected if a size is unreadable', () => {
    const broken = having(KEEPER, '/spec/dataVolumeClaimSpec/resources/requests/storage', '10 GB');
    expect(read(broken)).toMatchObject([
      { kind: 'rejected', key: UID, reason: expect.stringContaining('dataVolumeClaimSpec') },
    ]);
  });

  it('is read if the option kinds names it', async () => {
    await using kube = await FakeKubernetes.start({ installed: INSTALLED });
    kube.put(KEEPER as KubernetesObject);
    const items = await itemsAt(kube.url, { kinds: 'click-house-cluster, keeper-cluster' });
    expect(items).toMatchObject([{ kind: 'cluster', cluster: { key: UID } }]);
  });

  it('is not requested by default, since older credentials may not list it', async () => {
    await using kube = await FakeKubernetes.start({ installed: INSTALLED });
    kube.put(KEEPER as KubernetesObject);
    await expect(itemsAt(kube.url, {})).rejects.toMatchObject({ kind: 'gone' });
    expect(kube.taken.map(({ path }) => path)).not.toContain('/apis/clickhouse.com/v1alpha1/keeperclusters');
  });
});
