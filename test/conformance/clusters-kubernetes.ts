import { fixture, type Json } from './catalogue-case.ts';
import type { ClusterCase } from './cluster-case.ts';

/** A list as an API server answers it. */
function list(apiVersion: string, kind: string, ...items: Json[]): Json {
  return { apiVersion, kind: `${kind}List`, metadata: { resourceVersion: '812400' }, items };
}

const METADATA = ['name', 'namespace', 'uid', 'creationTimestamp'].map(
  (field) => `/items/0/metadata/${field}`,
);

export const clusterCase: ClusterCase = {
  ownClient: true,
  pages: [
    {
      path: '/apis/clickhouse.altinity.com/v1/clickhouseinstallations',
      query: { limit: '100' },
      json: list(
        'clickhouse.altinity.com/v1',
        'ClickHouseInstallation',
        fixture('kubernetes/click-house-installation.json'),
      ),
      list: 'items',
      maps: [
        '/items/0/metadata/labels',
        '/items/0/metadata/annotations',
        '/items/0/spec/templates/podTemplates/0/spec/nodeSelector',
      ],
      required: [
        '/items',
        '/metadata/resourceVersion',
        ...METADATA,
        '/items/0/spec/configuration/clusters/0/name',
        '/items/0/spec/templates/volumeClaimTemplates/0/spec/resources/requests/storage',
      ],
      optional: [
        '/items/0/status/replicas',
        '/items/0/spec/templates/podTemplates/0/spec/nodeSelector',
        '/items/0/spec/templates/podTemplates/0/spec/containers/1/resources',
        '/items/0/metadata/annotations',
        '/items/0/spec/configuration/clusters/0/layout',
      ],
      empty: { clusters: 1 },
    },
    {
      path: '/apis/postgresql.cnpg.io/v1/clusters',
      query: { limit: '100' },
      json: list('postgresql.cnpg.io/v1', 'Cluster', fixture('kubernetes/cloud-native-pg.json')),
      list: 'items',
      maps: ['/items/0/metadata/labels', '/items/0/metadata/annotations'],
      required: [
        '/items',
        '/metadata/resourceVersion',
        ...METADATA,
        '/items/0/spec',
        '/items/0/spec/storage/size',
      ],
      optional: [
        '/items/0/status/phase',
        '/items/0/spec/resources',
        '/items/0/spec/affinity',
        '/items/0/spec/walStorage',
        '/items/0/metadata/labels',
      ],
      empty: { clusters: 1 },
    },
  ],
  secrets: ['never read'],
  clusters: [
    {
      tenant: 'acme',
      key: '0c5b8f0e-6f0b-4c1e-9d3a-2f6f1f0a1b11/main',
      name: 'events',
      provider: 'AWS',
      region: { code: 'us-east-1' },
      user: { firstName: 'John', lastName: 'Doe' },
      status: 'Active',
      shards: 3,
      replicas: 2,
      machine: { name: 'r5.large', cpu: 2, ram: 16, ramUnit: 'Binary' },
      disks: [
        { type: { name: 'gp3' }, size: 150, unit: 'GiB' },
        { type: {}, size: 10, unit: 'GB' },
      ],
      createdAt: '2026-02-14T10:11:26.000000',
    },
    {
      tenant: 'globex',
      key: '9b1f6c64-9f6e-4b53-8c6b-5a1f8f6c2d22',
      name: 'orders',
      provider: 'Hetzner',
      region: { code: 'fsn1' },
      status: 'Active',
      shards: 1,
      replicas: 3,
      machine: { name: 'cx33', cpu: 2, ram: 8, ramUnit: 'Binary' },
      disks: [
        { type: { name: 'hcloud-volumes' }, size: 100, unit: 'GiB' },
        { type: { name: 'hcloud-volumes' }, size: 20, unit: 'GiB' },
        { type: { name: 'slow' }, size: 1000, unit: 'GB' },
      ],
      createdAt: '2026-03-01T08:00:00.000000',
    },
  ],
  rejected: [],
};
