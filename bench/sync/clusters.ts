/**
 * The control plane that the benchmark syncs: generated on demand and the same every time, so that it needs no
 * memory.
 */
import type { DescribedCluster } from '../../src/domain/cluster.ts';
import type { ClusterAdapter, ClusterItem } from '../../src/sources/source.ts';
import { REGIONS, regionCode, SIZES } from './catalogue.ts';

/** The step between changed clusters with `hundredth`: all the clusters of each such organization. */
const HUNDREDTH = 100;

export interface ClustersShape {
  /** A multiple of `HUNDREDTH`. */
  readonly organizations: number;
  /** Over all organizations; a multiple of them. */
  readonly clusters: number;
  /** Changes compared with the first state. `one` is applied after `hundredth`. */
  readonly changed: 'nothing' | 'hundredth' | 'one';
}

/** Organizations that `hundredth` changes. */
export function changedOrganizations({ organizations }: ClustersShape): number {
  return organizations / HUNDREDTH;
}

export const organizationSlug = (organization: number): string => `org-${organization + 1}`;

/** An ordinary source whose clusters are generated here instead of parsed. */
export function benchControlPlane(shape: ClustersShape): ClusterAdapter {
  return {
    id: 'bench-clusters',
    endpoints: [],
    credentials: 'none',
    schedule: '0 * * * *',
    clusters: () => items(shape),
  };
}

async function* items({ organizations, clusters, changed }: ClustersShape): AsyncGenerator<ClusterItem> {
  for (let number = 0; number < clusters; number++) {
    const isOne = changed === 'one' && number === 1;
    const isOfHundredth = changed !== 'nothing' && number % HUNDREDTH === 0;
    yield { kind: 'cluster', cluster: cluster(number, number % organizations, isOne || isOfHundredth) };
  }
}

function cluster(number: number, organization: number, isStopped: boolean): DescribedCluster {
  const { cpu, ram } = SIZES[number % SIZES.length] ?? SIZES[0];
  return {
    organization: organizationSlug(organization),
    key: `uid-${number}`,
    name: `Cluster ${number}`,
    provider: 'Benchmark',
    region: { code: regionCode(organization % REGIONS) },
    status: isStopped ? 'Stopped' : 'Active',
    shards: 1 + (number % 3),
    replicas: 2,
    user: { firstName: 'Ada', lastName: `of ${organization % 7}` },
    machine: { cpu, ram, ramUnit: 'Binary' },
    disks: [
      {
        type: {
          name: 'gp3',
          price: { amount: '0.000111', per: 'hour', currency: 'USD' },
          unit: 'Decimal',
        },
        size: 150,
        unit: 'GB',
        autoscaling: false,
      },
    ],
    createdAt: '2022-02-14T10:11:26.567713',
  };
}
