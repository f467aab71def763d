import { fixture } from './catalogue-case.ts';
import type { ClusterCase, ClusterPage } from './cluster-case.ts';

const PROJECT = '0123456789abcdef0123456789abcdef';
const EMPTY_PROJECT = 'fedcba9876543210fedcba9876543210';
const DATABASE = `/v1/cloud/project/${PROJECT}/database`;

const IDS = ['1', '2', '3'].map((last) => `b1c2d3e4-0000-4000-8000-00000000000${last}`);

/** The page of one service, which is not a list: its required fields define an empty one. */
function service(index: 1 | 2 | 3, fields: Pick<ClusterPage, 'required' | 'optional'>): ClusterPage {
  return {
    path: `${DATABASE}/service/${IDS[index - 1]}`,
    endpoint: '/v1/cloud/project/{project}/database/service/{service}',
    query: {},
    json: fixture(`ovh/database-service-${index}.json`),
    list: 'ipRestrictions',
    ...fields,
    empty: { clusters: 2 },
  };
}

/** From the schema of ovh/ovhcloud-cli, internal/assets/api-schemas/cloud.json. */
export const clusterCase: ClusterCase = {
  pages: [
    {
      path: '/v1/cloud/project',
      query: {},
      json: fixture('ovh/database-projects.json'),
      list: '',
      required: [],
      optional: [],
      empty: { fails: 'invalid' },
    },
    {
      path: `${DATABASE}/service`,
      endpoint: '/v1/cloud/project/{project}/database/service',
      query: {},
      json: fixture('ovh/database-services.json'),
      list: '',
      required: [],
      optional: [],
      empty: { clusters: 0 },
    },
    {
      path: `/v1/cloud/project/${EMPTY_PROJECT}/database/service`,
      endpoint: '/v1/cloud/project/{project}/database/service',
      query: {},
      json: [],
      list: '',
      required: [],
      optional: [],
      empty: { clusters: 2 },
    },
    {
      path: `${DATABASE}/capabilities`,
      endpoint: '/v1/cloud/project/{project}/database/capabilities',
      query: {},
      json: fixture('ovh/database-capabilities.json'),
      list: 'flavors',
      required: [
        '/flavors',
        '/flavors/0/specifications/core',
        '/flavors/0/specifications/memory/unit',
        '/flavors/0/specifications/memory/value',
      ],
      optional: ['/flavors/0', '/flavors/0/specifications', '/flavors/0/core', '/plans'],
      empty: { clusters: 2 },
    },
    service(1, {
      required: ['/engine', '/status', '/flavor', '/createdAt', '/storage/size/unit', '/storage/size/value'],
      optional: ['/description', '/region', '/nodes', '/nodeNumber', '/storage', '/disk', '/endpoints'],
    }),
    service(2, { required: ['/createdAt'], optional: ['/nodes', '/nodeNumber', '/disk', '/disk/size'] }),
    service(3, { required: [], optional: [] }),
  ],
  secrets: ['OVH_not-for-anybody'],
  clusters: [
    {
      tenant: PROJECT,
      key: 'b1c2d3e4-0000-4000-8000-000000000001',
      name: 'orders',
      provider: 'OVH',
      region: { code: 'GRA' },
      status: 'Active',
      shards: 1,
      replicas: 2,
      machine: { name: 'db1-7', cpu: 2, ram: 7, ramUnit: 'Decimal' },
      disks: [{ type: { name: 'high-speed' }, size: 160, unit: 'GB' }],
      software: { engine: 'postgresql', version: '16' },
      createdAt: '2024-03-05T09:17:42.301877',
    },
    {
      tenant: PROJECT,
      key: 'b1c2d3e4-0000-4000-8000-000000000002',
      name: 'b1c2d3e4-0000-4000-8000-000000000002',
      provider: 'OVH',
      region: { code: 'SBG' },
      status: 'UPDATING',
      shards: 1,
      replicas: 1,
      machine: { name: 'b3-16', cpu: 4, ram: 16, ramUnit: 'Decimal' },
      disks: [{ type: {}, size: 100, unit: 'GB' }],
      software: { engine: 'valkey' },
      createdAt: '2026-02-28T23:59:59.900000',
    },
  ],
  rejected: [
    {
      key: 'b1c2d3e4-0000-4000-8000-000000000003',
      reason: /^nodeNumber must be a whole number above 0; it is 0$/,
    },
  ],
};
