import { describe, expect, it } from 'vitest';
import type { Json } from '../../conformance/catalogue-case.ts';
import { clusterCase } from '../../conformance/clusters-kubernetes.ts';
import { changed, everyObject, without } from '../../conformance/json-changes.ts';
import { having, only, PG, PG_UID, read } from './kubernetes-objects.ts';

describe('a CloudNativePG cluster', () => {
  it('is a cluster of one shard whose replicas are its instances', () => {
    expect(only(PG)).toMatchObject({ key: PG_UID, shards: 1, replicas: 3 });
    expect(clusterCase.clusters).toContainEqual(only(PG));
  });

  it('is read the same with unknown fields', () => {
    const maps = ['/metadata/labels', '/metadata/annotations'];
    expect(read(everyObject(PG, 'new-field', { a: [1] }, maps))).toEqual(read(PG));
  });

  it.each<[string, Json, Json, string]>([
    [
      'Stopped while it hibernates',
      { 'cnpg.io/hibernation': 'on' },
      {
        readyInstances: 0,
        conditions: [{ type: 'cnpg.io/hibernation', status: 'True', reason: 'Hibernated' }],
      },
      'Stopped',
    ],
    ['Active before its hibernation begins', { 'cnpg.io/hibernation': 'on' }, {}, 'Active'],
    [
      'not ready while the operator waits for its health before its hibernation',
      { 'cnpg.io/hibernation': 'on' },
      {
        readyInstances: 2,
        conditions: [
          { type: 'cnpg.io/hibernation', status: 'False', reason: 'WaitingForHealthy' },
          { type: 'Ready', status: 'False', reason: 'ClusterIsNotReady' },
        ],
      },
      'ClusterIsNotReady',
    ],
    [
      'not Stopped after its hibernation',
      { 'cnpg.io/hibernation': 'off' },
      {
        readyInstances: 0,
        conditions: [{ type: 'cnpg.io/hibernation', status: 'True', reason: 'Hibernated' }],
      },
      'ClusterIsNotReady',
    ],
    ['Active with hibernation off', { 'cnpg.io/hibernation': 'off' }, {}, 'Active'],
    ['Fenced as a whole, in any phase', { 'cnpg.io/fencedInstances': '["*"]' }, {}, 'Fenced'],
    [
      'Fenced instance by instance',
      { 'cnpg.io/fencedInstances': '["orders-1","orders-2","orders-3"]' },
      {},
      'Fenced',
    ],
    [
      'Degraded with one fenced instance',
      { 'cnpg.io/fencedInstances': '["orders-2"]' },
      { readyInstances: 2 },
      'Degraded',
    ],
    ['Active with an empty fence', { 'cnpg.io/fencedInstances': '[]' }, {}, 'Active'],
    ['Active with an unreadable fence', { 'cnpg.io/fencedInstances': 'all' }, {}, 'Active'],
    [
      'Creating before its first primary',
      {},
      { currentPrimary: '', readyInstances: 0, conditions: [] },
      'Creating',
    ],
    ['not ready if no instance is, whatever the condition', {}, { readyInstances: 0 }, 'ClusterIsNotReady'],
    ['not ready if the condition is missing', {}, { conditions: [] }, 'ClusterIsNotReady'],
    [
      'the condition’s reason',
      {},
      { conditions: [{ type: 'Ready', status: 'False', reason: 'DetachedVolume' }] },
      'DetachedVolume',
    ],
  ])('is %s', (_, annotations, status, expected) => {
    const annotated = having(PG, '/metadata/annotations', annotations);
    const whole = changed(
      annotated,
      '/status',
      (given) => ({ ...(given as object), ...(status as object) }) as Json,
    );
    expect(only(whole).status).toBe(expected);
  });

  it('is Creating without a status, and Terminating once it is deleted', () => {
    expect(only(without(PG, '/status')).status).toBe('Creating');
    expect(only(having(PG, '/metadata/deletionTimestamp', '2026-04-01T00:00:00Z')).status).toBe(
      'Terminating',
    );
  });

  it.each<[string, Json, string]>([
    ['without a size', {}, 'spec.storage.size must have a size'],
    ['of size zero', { size: '0' }, 'spec.storage.size must be a size above 0'],
    ['of a negative size', { size: '-1Gi' }, 'spec.storage.size must be a size above 0'],
    ['of a size beyond any disk', { size: '1e30' }, 'spec.storage.size must be a size above 0'],
  ])('is rejected with storage %s', (_, storage, reason) => {
    expect(read(having(PG, '/spec/storage', storage))).toMatchObject([
      { kind: 'rejected', key: PG_UID, reason: expect.stringContaining(`globex/orders: ${reason}`) },
    ]);
  });
});
