import { fixture } from './catalogue-case.ts';
import type { ClusterCase } from './cluster-case.ts';

const DATABASE = ['uuid', 'name', 'type', 'state', 'node_count', 'plan', 'zone', 'create_time'];
const headers = { 'upcloud-total-count': '5' };

/** From the types and the recorded answers of UpCloudLtd/upcloud-go-api and UpCloudLtd/upcloud-cli. */
export const clusterCase: ClusterCase = {
  options: { organizationLabel: 'team' },
  pages: [
    {
      path: '/1.3/database',
      query: { limit: '100', offset: '0' },
      json: fixture('upcloud/databases-1.json'),
      headers,
      list: '',
      required: [
        ...DATABASE.map((field) => `/0/${field}`),
        '/0/labels/0/key',
        '/1/plan_components/compute/cpu',
        '/1/plan_components/compute/memory_gb',
      ],
      optional: [
        '/0/title',
        '/0/additional_disk_space_gib',
        '/0/labels',
        '/0/service_uri',
        '/1/plan_components',
        '/1/plan_components/storage',
      ],
      empty: { fails: 'invalid' },
    },
    {
      path: '/1.3/database',
      query: { limit: '100', offset: '3' },
      json: fixture('upcloud/databases-2.json'),
      headers,
      list: '',
      required: ['/1/create_time'],
      optional: ['/1/labels', '/1/powered'],
      empty: { fails: 'invalid' },
    },
  ],
  secrets: ['UC_not-for-anybody'],
  clusters: [
    {
      tenant: 'acme',
      key: '09e69439-573e-49a8-ba1b-e54156190417',
      name: 'Orders of the shop',
      provider: 'UpCloud',
      region: { code: 'de-fra1' },
      status: 'Active',
      shards: 1,
      replicas: 2,
      machine: { name: '2x2xCPU-4GB-50GB', cpu: 2, ram: 4, ramUnit: 'Binary' },
      disks: [{ type: {}, size: 70, unit: 'GiB' }],
      software: { engine: 'mysql', version: '8.4.8' },
      createdAt: '2021-08-25T08:47:06.000000',
    },
    {
      tenant: 'acme-lab',
      key: '0927dfd6-3884-4079-a948-3a8881df1a7a',
      name: 'lab',
      provider: 'UpCloud',
      region: { code: 'fi-hel1' },
      status: 'rebuilding',
      shards: 1,
      replicas: 3,
      machine: { name: 'rdb.standard.2CPU-8GB', cpu: 2, ram: 8, ramUnit: 'Binary' },
      disks: [{ type: {}, size: 120, unit: 'GiB' }],
      software: { engine: 'postgresql' },
      createdAt: '2026-01-08T12:00:00.500000',
    },
    {
      key: '09cbbb6b-ef55-45ce-bd01-e3171581fe11',
      name: 'sessions',
      provider: 'UpCloud',
      region: { code: 'fi-hel2' },
      status: 'Stopped',
      shards: 1,
      replicas: 1,
      machine: { name: '1x1xCPU-2GB', cpu: 1, ram: 2, ramUnit: 'Binary' },
      software: { engine: 'valkey' },
      createdAt: '2025-06-30T22:05:00.000000',
    },
    {
      key: '09bb9d06-c997-40a1-906e-375435069cc9',
      name: 'search',
      provider: 'UpCloud',
      region: { code: 'fi-hel2' },
      status: 'setup-network',
      shards: 1,
      replicas: 3,
      machine: { name: 'startup-4' },
      software: { engine: 'opensearch' },
      createdAt: '2025-09-11T07:37:02.000000',
    },
  ],
  rejected: [
    {
      key: '09d5669b-7c31-4a2d-9148-62150053e70a',
      reason: /^create_time must be an instant such as .*; it is "2025-09-11 07:37"$/,
    },
  ],
};
