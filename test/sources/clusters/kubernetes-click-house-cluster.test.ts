import { describe, expect, it } from 'vitest';
import type { Json } from '../../conformance/catalogue-case.ts';
import { clusterCase } from '../../conformance/clusters-kubernetes.ts';
import { changed, everyObject, without } from '../../conformance/json-changes.ts';
import { CHC, CHC_UID, having, only, read } from './kubernetes-objects.ts';

const RESOURCES = '/spec/containerTemplate/resources';

describe('a ClickHouseCluster', () => {
  it('is a cluster with its shards, replicas, machine and disks', () => {
    expect(only(CHC)).toMatchObject({ key: CHC_UID, shards: 2, replicas: 3 });
    expect(clusterCase.clusters).toContainEqual(only(CHC));
  });

  it('is read the same with unknown fields', () => {
    const maps = ['/metadata/labels', '/metadata/annotations', '/spec/podTemplate/nodeSelector'];
    expect(read(everyObject(CHC, 'new-field', { a: [1] }, maps))).toEqual(read(CHC));
  });

  it('has its operator’s defaults for missing fields', () => {
    const bare = without(without(CHC, '/spec/replicas'), '/spec/shards');
    expect(only(bare)).toMatchObject({ shards: 1, replicas: 3 });
  });

  it.each<[string, Json, string]>([
    ['Active while every replica is ready', {}, 'Active'],
    ['Degraded while one is not ready', { readyReplicas: 5 }, 'Degraded'],
    ['Degraded while no replica’s state is known', { readyReplicas: null }, 'Degraded'],
    ['Creating before its operator has processed it', { currentRevision: '', conditions: null }, 'Creating'],
    [
      'Creating before it was first complete',
      { currentRevision: '', conditions: [{ type: 'Ready', status: 'False', reason: 'SomeShardsNotReady' }] },
      'Creating',
    ],
    [
      'the condition’s reason',
      { readyReplicas: 3, conditions: [{ type: 'Ready', status: 'False', reason: 'SomeShardsNotReady' }] },
      'SomeShardsNotReady',
    ],
    ['not ready if the condition is missing', { conditions: [] }, 'NotReady'],
  ])('is %s', (_, status, expected) => {
    const whole = changed(
      CHC,
      '/status',
      (given) => ({ ...(given as object), ...(status as object) }) as Json,
    );
    expect(only(whole).status).toBe(expected);
  });

  it('is Creating without a status', () => {
    expect(only(without(CHC, '/status')).status).toBe('Creating');
  });

  it.each(['/spec/replicas', '/spec/shards'])('is Stopped if %s is 0', (pointer) => {
    expect(only(having(CHC, pointer, 0)).status).toBe('Stopped');
  });

  it('is Terminating once it is deleted', () => {
    const deleted = having(CHC, '/metadata/deletionTimestamp', '2026-05-01T00:00:00Z');
    expect(only(deleted).status).toBe('Terminating');
  });

  it('names only the machine type if it requests no resources, and no machine without a type', () => {
    expect(only(without(CHC, RESOURCES)).machine).toEqual({ name: 'n2-standard-4' });
    const nowhere = without(without(CHC, RESOURCES), '/spec/podTemplate');
    expect(only(nowhere)).toMatchObject({ machine: undefined });
  });

  it('has no disks without a claim', () => {
    const bare = without(without(CHC, '/spec/dataVolumeClaimSpec'), '/spec/additionalDataVolumeClaimSpecs');
    expect(only(bare).disks).toEqual([]);
  });

  it('is rejected if a size is unreadable', () => {
    const broken = having(CHC, '/spec/dataVolumeClaimSpec/resources/requests/storage', '200 GB');
    expect(read(broken)).toEqual([
      {
        kind: 'rejected',
        key: CHC_UID,
        reason:
          'initech/metrics: spec.dataVolumeClaimSpec.resources.requests.storage must be a size above 0 such as ' +
          '100Gi; it is "200 GB"',
      },
    ]);
  });
});
