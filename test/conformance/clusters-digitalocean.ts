import { fixture } from './catalogue-case.ts';
import type { ClusterCase } from './cluster-case.ts';

const DATABASE = ['id', 'name', 'engine', 'status', 'num_nodes', 'size', 'region', 'created_at'];

/** From the schemas and examples of digitalocean/openapi, specification/resources/databases. */
export const clusterCase: ClusterCase = {
  pages: [
    {
      path: '/v2/databases',
      query: { page: '1', per_page: '200' },
      json: fixture('digitalocean/databases-1.json'),
      list: 'databases',
      required: ['/databases', ...DATABASE.map((field) => `/databases/0/${field}`)],
      optional: [
        '/meta',
        '/databases/0/project_id',
        '/databases/0/storage_size_mib',
        '/databases/0/connection',
        '/databases/0/tags',
      ],
      empty: { fails: 'invalid' },
    },
    {
      path: '/v2/databases',
      query: { page: '2', per_page: '200' },
      json: fixture('digitalocean/databases-2.json'),
      list: 'databases',
      required: ['/databases', '/databases/0/created_at'],
      optional: ['/links', '/links/pages', '/meta'],
      empty: { fails: 'invalid' },
    },
  ],
  secrets: ['DO_not-for-anybody'],
  clusters: [
    {
      tenant: '4de7ac8b-495b-4884-9a69-1050c6793cd6',
      key: '9cc10173-e9ea-4176-9dbc-a4cee4c4ff30',
      name: 'orders',
      provider: 'DigitalOcean',
      region: { code: 'fra1' },
      status: 'Active',
      shards: 1,
      replicas: 2,
      machine: { name: 'db-s-2vcpu-4gb', cpu: 2, ram: 4, ramUnit: 'Binary' },
      disks: [{ type: {}, size: 60, unit: 'GiB' }],
      software: { engine: 'postgresql', version: '16.4', endOfLife: '2028-11-09' },
      createdAt: '2024-03-05T09:17:42.000000',
    },
    {
      tenant: '4de7ac8b-495b-4884-9a69-1050c6793cd6',
      key: '6a2b0f1e-71f3-4f6e-9a77-2f8c9b1d7e02',
      name: 'sessions',
      provider: 'DigitalOcean',
      region: { code: 'nyc3' },
      status: 'resizing',
      shards: 1,
      replicas: 1,
      machine: { name: 'so1_5-4vcpu-32gb', cpu: 4, ram: 32, ramUnit: 'Binary' },
      software: { engine: 'valkey', version: '8' },
      createdAt: '2025-09-30T22:05:00.123000',
    },
    {
      tenant: '88a1c5f0-2b6c-4a0e-8d7c-0f1e2d3c4b5a',
      key: 'c0ffee00-0000-4000-8000-000000000001',
      name: 'search',
      provider: 'DigitalOcean',
      region: { code: 'ams3' },
      status: 'Creating',
      shards: 1,
      replicas: 3,
      machine: { name: 'm3-2vcpu-16gb', cpu: 2, ram: 16, ramUnit: 'Binary' },
      disks: [],
      software: { engine: 'opensearch', version: '2' },
      createdAt: '2026-02-28T23:59:59.000000',
    },
  ],
  rejected: [
    {
      key: 'c0ffee00-0000-4000-8000-000000000002',
      reason: /^num_nodes must be a whole number above 0; it is 0$/,
    },
  ],
};
