import { existsSync, readFileSync } from 'node:fs';
import { loadAllYaml } from '@kubernetes/client-node';
import { describe, expect, it } from 'vitest';
import { KINDS } from '../../../src/sources/clusters/kubernetes/kinds.ts';
import type { Json } from '../../conformance/catalogue-case.ts';
import { needs, RECORDED_PAYLOADS } from '../../support/needs.ts';
import { clusters, having } from './kubernetes-objects.ts';

const SAMPLES = new URL('../../../../shared/data/clusters/', import.meta.url);
const samples: readonly [string, readonly object[]][] = [
  [
    'altinity-clickhouse/01-simple-layout-03-multiple-clusters.yaml',
    [
      { name: 'sample/replicas', shards: 3, replicas: 2 },
      { name: 'sample/shards', shards: 2, replicas: 1 },
      { name: 'sample/shards-replicas', shards: 1, replicas: 2 },
    ],
  ],
  [
    'altinity-clickhouse/01-simple-layout-04-shards-and-replicas-customization.yaml',
    [{ shards: 1, replicas: 1 }],
  ],
  [
    'altinity-clickhouse/03-persistent-volume-07-multiple-resizable-volumes-1.yaml',
    [{ disks: [{ type: { name: 'gp2-resizable' }, size: 1, unit: 'GiB' }] }],
  ],
  [
    'altinity-clickhouse/04-replication-zookeeper-04-medium-AWS-persistent-volume.yaml',
    [{ shards: 1, replicas: 2, disks: [{ type: {}, size: 0.87890625, unit: 'GiB' }] }],
  ],
  [
    'altinity-clickhouse/13-distribution-03-3x3-distribution-detailed.yaml',
    [{ shards: 3, replicas: 3, disks: [] }],
  ],
  ['cloudnative-pg/cluster-example.yaml', [{ shards: 1, replicas: 3, status: 'Creating' }]],
  [
    'cloudnative-pg/cluster-example-full.yaml',
    [{ replicas: 3, machine: { cpu: 1, ram: 1, ramUnit: 'Binary' } }],
  ],
  [
    'cloudnative-pg/cluster-example-with-tablespaces.yaml',
    [{ disks: [{ size: 1 }, { size: 1 }, { size: 2 }, { size: 2 }] }],
  ],
  [
    'cloudnative-pg/cluster-pvc-template.yaml',
    [{ disks: [{ type: { name: 'standard' }, size: 1, unit: 'GiB' }] }],
  ],
];

describe('the operators’ own examples', needs(existsSync(SAMPLES), RECORDED_PAYLOADS), () => {
  it.each(samples)('%s is read', (file, expected) => {
    const objects = loadAllYaml(readFileSync(new URL(file, SAMPLES), 'utf8')) as Json[];
    const object = objects.find((each) =>
      KINDS.some(({ kind }) => kind === (each as { kind?: unknown } | null)?.kind),
    );
    const metadata = {
      name: 'sample',
      namespace: 'acme',
      uid: 'u',
      creationTimestamp: '2026-01-01T00:00:00Z',
    };
    expect(clusters(having(object ?? null, '/metadata', metadata))).toMatchObject(expected);
  });
});
