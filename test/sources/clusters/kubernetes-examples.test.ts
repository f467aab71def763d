import { readFileSync } from 'node:fs';
import { loadAllYaml } from '@kubernetes/client-node/dist/yaml.js';
import { describe, expect, it } from 'vitest';
import { KINDS } from '../../../src/sources/clusters/kubernetes/kinds.ts';
import type { Json } from '../../conformance/catalogue-case.ts';
import { needsRecorded, type Payloads, RECORDED, WRITTEN } from '../../support/payloads.ts';
import { clusters, having } from './kubernetes-objects.ts';

const written: readonly [string, readonly object[]][] = [
  [
    'clickhouse-layouts.yaml',
    [
      { name: 'sample/both', shards: 3, replicas: 2, disks: [{ type: { name: 'fast' }, size: 0.87890625 }] },
      { name: 'sample/shards', shards: 2, replicas: 1 },
      { name: 'sample/replicas', shards: 1, replicas: 2 },
    ],
  ],
  [
    'postgres-tablespaces.yaml',
    [
      {
        shards: 1,
        replicas: 3,
        status: 'Creating',
        machine: { cpu: 1, ram: 1, ramUnit: 'Binary' },
        disks: [{ type: { name: 'standard' }, size: 1, unit: 'GiB' }, { size: 2 }, { size: 4 }],
      },
    ],
  ],
];
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

function read(payloads: Payloads, file: string) {
  const text = readFileSync(new URL(`clusters/${file}`, payloads.folder), 'utf8');
  const objects = loadAllYaml(text) as Json[];
  const object = objects.find((each) =>
    KINDS.some(({ kind }) => kind === (each as { kind?: unknown } | null)?.kind),
  );
  const metadata = {
    name: 'sample',
    namespace: 'acme',
    uid: 'u',
    creationTimestamp: '2026-01-01T00:00:00Z',
  };
  return clusters(having(object ?? null, '/metadata', metadata));
}

it.each(written)('%s is read', (file, expected) => {
  expect(read(WRITTEN, file)).toMatchObject(expected);
});

describe('the operators’ own examples', needsRecorded, () => {
  it.each(samples)('%s is read', (file, expected) => {
    expect(read(RECORDED, file)).toMatchObject(expected);
  });
});
