import { fixture } from './catalogue-case.ts';
import type { ClusterCase } from './cluster-case.ts';
import { contractCluster, DISK_FIELDS } from './contract-cluster.ts';

export const clusterCase: ClusterCase = {
  basePath: '/clusters.json',
  conditional: true,
  pages: [
    {
      path: '/clusters.json',
      endpoint: '{url}',
      query: {},
      json: fixture('clusters/clusters.json'),
      list: '',
      required: [
        '/0/name',
        '/0/region/name',
        '/0/region/code',
        '/0/provider/name',
        '/0/status',
        '/0/shards',
        '/0/replicas',
        '/0/machine/ram',
        '/0/machine/cpu',
        '/0/machine/ram_unit',
        ...DISK_FIELDS,
        '/0/created_at',
      ],
      optional: [
        '/0/organization',
        '/0/slug',
        '/0/region',
        '/0/provider',
        '/0/user',
        '/0/user/first_name',
        '/0/machine',
        '/0/machine/name',
        '/0/machine/id',
        '/0/disks',
        '/1/labels',
      ],
      empty: { clusters: 0 },
    },
  ],
  clusters: [
    {
      ...contractCluster('USD'),
      organization: 'acme',
      key: '5b0c7a0e-1f2d-4a52-9a62-3f8d2d3f9a10',
      provider: 'Hetzner',
      region: { code: 'fsn1', name: 'Falkenstein' },
      user: { firstName: 'John', lastName: 'Doe' },
      machine: { name: 'cx32', cpu: 4, ram: 8, ramUnit: 'Decimal' },
      disks: [
        {
          type: {
            name: 'local',
            price: { amount: '0.00000000045', per: 'minute', currency: 'USD' },
            unit: 'Decimal',
          },
          size: 150,
          unit: 'GB',
          autoscaling: false,
        },
        {
          type: {
            name: 'volume',
            price: { amount: '0.000001', per: 'minute', currency: 'USD' },
            unit: 'Binary',
          },
          size: 1.5,
          unit: 'TiB',
          autoscaling: true,
        },
      ],
    },
    {
      organization: 'globex',
      key: 'Ereignisse – Süd',
      name: 'Ereignisse – Süd',
      provider: 'Linode',
      region: { code: 'us-east', name: 'Newark, NJ' },
      status: 'Creating',
      shards: 0,
      replicas: 0,
      machine: { cpu: 2, ram: 4, ramUnit: 'Binary' },
      disks: [],
      createdAt: '2025-01-01T01:30:00.123456',
    },
  ],
  rejected: [],
};
