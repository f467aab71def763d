import { fixture, type Json } from './catalogue-case.ts';
import type { ClusterCase } from './cluster-case.ts';

/** A list in the format of an API server. */
function list(apiVersion: string, kind: string, ...items: Json[]): Json {
  return { apiVersion, kind: `${kind}List`, metadata: { resourceVersion: '812400' }, items };
}

const METADATA = ['name', 'namespace', 'uid', 'creationTimestamp'].map(
  (field) => `/items/0/metadata/${field}`,
);

/** An API server's description of one API. */
function discovered(apiVersion: string, ...names: string[]): { readonly path: string; readonly json: Json } {
  const resources = names.map((name) => ({ name, namespaced: true }));
  const json = { kind: 'APIResourceList', groupVersion: apiVersion, resources };
  return { path: `/apis/${apiVersion}`, json };
}

export const clusterCase: ClusterCase = {
  ownClient: true,
  options: { kinds: 'click-house-cluster,click-house-installation,cloud-native-pg,keeper-cluster' },
  afterRefusal: [
    discovered('clickhouse.com/v1alpha1', 'clickhouseclusters', 'keeperclusters'),
    discovered('clickhouse.altinity.com/v1', 'clickhouseinstallations'),
    discovered('postgresql.cnpg.io/v1', 'clusters'),
  ],
  pages: [
    {
      path: '/apis/clickhouse.com/v1alpha1/clickhouseclusters',
      query: { limit: '100' },
      json: list(
        'clickhouse.com/v1alpha1',
        'ClickHouseCluster',
        fixture('kubernetes/click-house-cluster.json'),
      ),
      list: 'items',
      maps: [
        '/items/0/metadata/labels',
        '/items/0/metadata/annotations',
        '/items/0/spec/podTemplate/nodeSelector',
      ],
      required: [
        '/items',
        '/metadata/resourceVersion',
        ...METADATA,
        '/items/0/spec/dataVolumeClaimSpec/resources/requests/storage',
      ],
      optional: [
        '/items/0/status/version',
        '/items/0/spec/replicas',
        '/items/0/spec/shards',
        '/items/0/spec/podTemplate',
        '/items/0/spec/containerTemplate',
        '/items/0/spec/dataVolumeClaimSpec',
        '/items/0/spec/additionalDataVolumeClaimSpecs',
        '/items/0/metadata/labels',
      ],
      empty: { clusters: 3 },
    },
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
        '/items/0/spec/templates/volumeClaimTemplates/0/spec/resources/requests/storage',
      ],
      optional: [
        '/items/0/status/replicas',
        '/items/0/spec/templates/podTemplates/0/spec/nodeSelector',
        '/items/0/spec/templates/podTemplates/0/spec/containers/1/resources',
        '/items/0/metadata/annotations',
        '/items/0/spec/configuration/clusters/0/layout',
      ],
      empty: { clusters: 3 },
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
      empty: { clusters: 3 },
    },
    {
      path: '/apis/clickhouse.com/v1alpha1/keeperclusters',
      query: { limit: '100' },
      json: list('clickhouse.com/v1alpha1', 'KeeperCluster', fixture('kubernetes/keeper-cluster.json')),
      list: 'items',
      maps: [
        '/items/0/metadata/labels',
        '/items/0/metadata/annotations',
        '/items/0/spec/podTemplate/nodeSelector',
      ],
      required: [
        '/items',
        '/metadata/resourceVersion',
        ...METADATA,
        '/items/0/spec/dataVolumeClaimSpec/resources/requests/storage',
      ],
      optional: ['/items/0/spec/replicas', '/items/0/spec/dataVolumeClaimSpec', '/items/0/status'],
      empty: { clusters: 3 },
    },
  ],
  secrets: ['never read'],
  clusters: [
    {
      tenant: 'initech',
      key: '7e2f0a52-7c1e-4f86-b0a9-3e5c7a9d4444',
      name: 'keeper',
      provider: 'GCP',
      region: { code: 'europe-west1' },
      status: 'Active',
      shards: 1,
      replicas: 3,
      machine: { name: 'e2-standard-2', cpu: 1, ram: 1, ramUnit: 'Binary' },
      disks: [{ type: { name: 'pd-ssd' }, size: 10, unit: 'GiB' }],
      software: { engine: 'clickhouse-keeper' },
      createdAt: '2026-04-02T12:20:00.000000',
    },
    {
      tenant: 'initech',
      key: '4d3f0a52-7c1e-4f86-b0a9-3e5c7a9d3333',
      name: 'metrics',
      provider: 'GCP',
      region: { code: 'europe-west1' },
      user: { firstName: 'Grace', lastName: 'Hopper' },
      status: 'Active',
      shards: 2,
      replicas: 3,
      machine: { name: 'n2-standard-4', cpu: 4, ram: 16, ramUnit: 'Binary' },
      disks: [
        { type: { name: 'pd-ssd' }, size: 200, unit: 'GiB' },
        { type: {}, size: 0.5, unit: 'GB' },
      ],
      software: { engine: 'clickhouse', version: '25.8' },
      createdAt: '2026-04-02T12:30:00.000000',
    },
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
      software: { engine: 'clickhouse', version: '25.8' },
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
      software: { engine: 'postgresql', version: '18.0' },
      createdAt: '2026-03-01T08:00:00.000000',
    },
  ],
  rejected: [],
};
