import type { ReportedCluster, ReportedDisk } from '../../../src/domain/cluster.ts';
import type { ClusterItem } from '../../../src/sources/source.ts';

type Fields = Partial<Omit<ReportedCluster, 'key'>>;

export const disk = (name: string, amount = '0.001', fields: Partial<ReportedDisk> = {}): ReportedDisk => ({
  type: { name, price: { amount, per: 'minute', currency: 'USD' }, unit: 'Binary' },
  size: 100,
  unit: 'GiB',
  autoscaling: false,
  ...fields,
});

export function reported(key: string, fields: Fields = {}): ReportedCluster {
  return {
    organization: 'org',
    key,
    name: key,
    provider: 'Acme',
    region: { code: 'a', name: 'A' },
    status: 'Active',
    shards: 1,
    replicas: 2,
    user: { firstName: 'Ada', lastName: 'Lovelace' },
    machine: { cpu: 2, ram: 4, ramUnit: 'Binary' },
    disks: [disk('ssd')],
    createdAt: '2022-02-14T10:11:26.567713',
    ...fields,
  };
}

/** Returns a cluster of the organization `org` at Acme in region a, with the shape of `offer`. */
export const cluster = (key: string, fields: Fields = {}): ClusterItem<ReportedCluster> => ({
  kind: 'cluster',
  cluster: reported(key, fields),
});
