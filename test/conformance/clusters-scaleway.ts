import { fixture } from './catalogue-case.ts';
import type { ClusterCase } from './cluster-case.ts';

const PROJECT = '105a0b1c-4f0e-4a53-9d55-8a1c7d9e4b10';
const COMMON = ['id', 'name', 'status', 'node_type', 'created_at', 'project_id'];
const page = (number: string) => ({ page: number, page_size: '100' });

/**
 * From the types of scaleway/scaleway-sdk-go: api/rdb/v1, api/mongodb/v1 and api/redis/v1. Node types of rdb and Redis have the
 * recorded values of scaleway/terraform-provider-scaleway: data-source-rdb-node-types-basic.cassette.yaml@656cd0d7 and
 * data-source-redis-node-types-basic.cassette.yaml@f0872a89.
 */
export const clusterCase: ClusterCase = {
  options: { rdb: 'fr-par', mongodb: 'fr-par', redis: 'fr-par-1' },
  pages: [
    {
      path: '/rdb/v1/regions/fr-par/instances',
      endpoint: '/rdb/v1/regions/{region}/instances',
      query: page('1'),
      json: fixture('scaleway/rdb-instances-1.json'),
      list: 'instances',
      required: [
        '/instances',
        '/total_count',
        ...[...COMMON, 'region', 'is_ha_cluster', 'volume/type', 'volume/size'].map(
          (field) => `/instances/0/${field}`,
        ),
      ],
      optional: ['/instances/0/volume', '/instances/0/read_replicas', '/instances/0/endpoints'],
      empty: { fails: 'invalid' },
    },
    {
      path: '/rdb/v1/regions/fr-par/instances',
      endpoint: '/rdb/v1/regions/{region}/instances',
      query: page('2'),
      json: fixture('scaleway/rdb-instances-2.json'),
      list: 'instances',
      required: ['/instances', '/total_count'],
      optional: ['/instances/0/engine'],
      empty: { fails: 'invalid' },
    },
    {
      path: '/rdb/v1/regions/fr-par/node-types',
      endpoint: '/rdb/v1/regions/{region}/node-types',
      query: { ...page('1'), include_disabled_types: 'true' },
      json: fixture('scaleway/rdb-node-types.json'),
      list: 'node_types',
      required: ['/node_types', '/node_types/0/vcpus', '/node_types/0/memory'],
      optional: ['/node_types/0/stock_status'],
      empty: { fails: 'invalid' },
    },
    {
      path: '/mongodb/v1/regions/fr-par/instances',
      endpoint: '/mongodb/v1/regions/{region}/instances',
      query: page('1'),
      json: fixture('scaleway/mongodb-instances.json'),
      list: 'instances',
      required: [
        '/instances',
        '/total_count',
        ...[...COMMON, 'region', 'node_amount', 'volume/type', 'volume/size_bytes'].map(
          (field) => `/instances/0/${field}`,
        ),
      ],
      optional: ['/instances/0/volume'],
      empty: { fails: 'invalid' },
    },
    {
      path: '/mongodb/v1/regions/fr-par/node-types',
      endpoint: '/mongodb/v1/regions/{region}/node-types',
      query: { ...page('1'), include_disabled: 'true' },
      json: fixture('scaleway/mongodb-node-types.json'),
      list: 'node_types',
      required: ['/node_types', '/node_types/0/vcpus', '/node_types/0/memory_bytes'],
      optional: [],
      empty: { fails: 'invalid' },
    },
    {
      path: '/redis/v1/zones/fr-par-1/clusters',
      endpoint: '/redis/v1/zones/{zone}/clusters',
      query: page('1'),
      json: fixture('scaleway/redis-clusters.json'),
      list: 'clusters',
      required: [
        '/clusters',
        '/total_count',
        ...[...COMMON, 'zone', 'cluster_size'].map((field) => `/clusters/0/${field}`),
      ],
      optional: ['/clusters/0/user_name'],
      empty: { fails: 'invalid' },
    },
    {
      path: '/redis/v1/zones/fr-par-1/node-types',
      endpoint: '/redis/v1/zones/{zone}/node-types',
      query: { ...page('1'), include_disabled_types: 'true' },
      json: fixture('scaleway/redis-node-types.json'),
      list: 'node_types',
      required: ['/node_types', '/node_types/0/vcpus', '/node_types/0/memory'],
      optional: [],
      empty: { fails: 'invalid' },
    },
  ],
  clusters: [
    {
      tenant: PROJECT,
      key: '11111111-aaaa-4000-8000-000000000001',
      name: 'orders',
      provider: 'Scaleway',
      region: { code: 'fr-par' },
      status: 'Active',
      shards: 1,
      replicas: 3,
      machine: { name: 'db-gp-xs', cpu: 4, ram: 16, ramUnit: 'Decimal' },
      disks: [{ type: { name: 'sbs_5k' }, size: 150, unit: 'GB' }],
      createdAt: '2024-03-05T09:17:42.301877',
    },
    {
      tenant: PROJECT,
      key: '11111111-aaaa-4000-8000-000000000002',
      name: 'lab',
      provider: 'Scaleway',
      region: { code: 'fr-par' },
      status: 'Degraded',
      shards: 1,
      replicas: 1,
      machine: { name: 'db-dev-s', cpu: 2, ram: 2, ramUnit: 'Decimal' },
      disks: [{ type: { name: 'lssd' }, size: 5, unit: 'GB' }],
      createdAt: '2026-01-08T12:00:00.000000',
    },
    {
      tenant: PROJECT,
      key: '33333333-aaaa-4000-8000-000000000001',
      name: 'events',
      provider: 'Scaleway',
      region: { code: 'fr-par' },
      status: 'Creating',
      shards: 1,
      replicas: 3,
      machine: { name: 'MGDB-PLAY2-NANO', cpu: 2, ram: 8, ramUnit: 'Binary' },
      disks: [{ type: { name: 'sbs_15k' }, size: 25, unit: 'GB' }],
      createdAt: '2026-02-28T23:59:59.900000',
    },
    {
      tenant: '88a1c5f0-2b6c-4a0e-8d7c-0f1e2d3c4b5a',
      key: '44444444-aaaa-4000-8000-000000000001',
      name: 'sessions',
      provider: 'Scaleway',
      region: { code: 'fr-par-1' },
      status: 'Active',
      shards: 3,
      replicas: 1,
      machine: { name: 'RED1-S', cpu: 4, ram: 12, ramUnit: 'Decimal' },
      disks: [],
      createdAt: '2025-09-30T22:05:00.000000',
    },
    {
      tenant: '88a1c5f0-2b6c-4a0e-8d7c-0f1e2d3c4b5a',
      key: '44444444-aaaa-4000-8000-000000000002',
      name: 'cache',
      provider: 'Scaleway',
      region: { code: 'fr-par-1' },
      status: 'Stopped',
      shards: 1,
      replicas: 1,
      machine: { name: 'RED1-OLD' },
      disks: [],
      createdAt: '2023-01-12T08:31:00.000000',
    },
  ],
  rejected: [
    {
      key: '11111111-aaaa-4000-8000-000000000003',
      reason: /^is_ha_cluster must be true or false; it is "no"$/,
    },
  ],
};
