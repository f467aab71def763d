import type { DescribedCluster } from '../../src/domain/cluster.ts';

/** JSON pointers to the parts of a disk, in the first cluster of a list. */
export const DISK_FIELDS = ['type/name', 'type/price', 'type/unit', 'size', 'unit', 'autoscaling'].map(
  (field) => `/0/disks/0/${field}`,
);

/** The contract's example cluster with other regions and creators; `currency` is that of its disk. */
export function contractCluster(currency: string) {
  return {
    key: 'cluster-test',
    name: 'Cluster Test',
    slug: 'cluster-test',
    status: 'Active',
    shards: 3,
    replicas: 1,
    disks: [
      {
        type: {
          name: 'gp2',
          price: { amount: '0.00000000045', per: 'minute', currency },
          unit: 'Decimal',
        },
        size: 150,
        unit: 'GB',
        autoscaling: false,
      },
    ],
    createdAt: '2022-02-14T10:11:26.567713',
  } as const satisfies Partial<DescribedCluster>;
}
