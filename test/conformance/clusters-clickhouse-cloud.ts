import { fixture } from './catalogue-case.ts';
import type { ClusterCase } from './cluster-case.ts';

const ORGANIZATION = '6f0c1f3a-2d6b-4f0e-9f55-8a1c7d9e4b10';
const SERVICES = `/v1/organizations/${ORGANIZATION}/services`;

export const clusterCase: ClusterCase = {
  pages: [
    {
      path: '/v1/organizations',
      query: {},
      json: fixture('clickhouse-cloud/organizations.json'),
      list: 'result',
      required: ['/result', '/result/0/id'],
      optional: ['/nextCursor', '/result/0/name', '/status'],
      empty: { fails: 'invalid' },
    },
    {
      path: SERVICES,
      endpoint: '/v1/organizations/{organization}/services',
      query: {},
      json: fixture('clickhouse-cloud/services-1.json'),
      list: 'result',
      required: [
        '/result',
        '/result/0/id',
        '/result/0/name',
        '/result/0/provider',
        '/result/0/region',
        '/result/0/state',
        '/result/0/numReplicas',
        '/result/0/createdAt',
      ],
      optional: ['/result/0/minReplicaMemoryGb', '/result/0/endpoints', '/limit'],
      empty: { clusters: 1 },
    },
    {
      path: SERVICES,
      endpoint: '/v1/organizations/{organization}/services',
      query: { cursor: 'bGFzdC1pcw' },
      json: fixture('clickhouse-cloud/services-2.json'),
      list: 'result',
      required: ['/result', '/result/0/createdAt'],
      optional: ['/nextCursor'],
      empty: { clusters: 3 },
    },
  ],
  clusters: [
    {
      tenant: ORGANIZATION,
      key: 'a3163f31-21f4-4e22-844e-ef3fbc26ace2',
      name: 'Product analytics',
      provider: 'aws',
      region: { code: 'us-east-1' },
      status: 'Active',
      shards: 1,
      replicas: 3,
      machine: { name: '16 GiB', cpu: 4, ram: 16, ramUnit: 'Binary' },
      createdAt: '2025-11-21T06:23:50.000000',
    },
    {
      tenant: ORGANIZATION,
      key: 'c9a4f0f6-4f0f-49d5-93c0-1f7a5b3f6a77',
      name: 'Staging – EU',
      provider: 'gcp',
      region: { code: 'europe-west4' },
      status: 'idle',
      shards: 1,
      replicas: 1,
      machine: { name: '8 GiB', cpu: 2, ram: 8, ramUnit: 'Binary' },
      createdAt: '2025-03-02T17:45:00.123000',
    },
    {
      tenant: ORGANIZATION,
      key: 'd21b7c55-0c1f-4b57-8d09-6f2c7f7b1e90',
      name: 'Logs',
      provider: 'azure',
      region: { code: 'germanywestcentral' },
      status: 'Degraded',
      shards: 1,
      replicas: 2,
      machine: { name: '32 GiB', cpu: 8, ram: 32, ramUnit: 'Binary' },
      createdAt: '2024-09-09T12:00:00.000000',
    },
    {
      tenant: ORGANIZATION,
      key: 'e7704f1d-7a3e-4d1b-9f4e-2b6c8d0a5511',
      name: 'Archive',
      provider: 'aws',
      region: { code: 'eu-central-1' },
      status: 'Stopped',
      shards: 1,
      replicas: 2,
      createdAt: '2023-01-12T08:31:00.000000',
    },
  ],
  rejected: [
    {
      key: 'f00dbabe-0000-4000-8000-000000000001',
      reason: /^numReplicas is missing, and so is minReplicas; one of them must be a whole number above 0$/,
    },
  ],
};
