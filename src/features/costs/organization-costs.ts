/** The costs of all clusters of an organization. Pure. */
import type { ClusterDocument } from '../../domain/cluster.ts';
import { type Amount, clusterCost, machineAmount, NOTHING, sum } from '../../domain/cost.ts';
import { isSamePrice, type Priced } from './prices.ts';

type Where = Pick<ClusterDocument, 'provider' | 'region'>;

/** What the cost of a cluster needs of its document. Clusters of one region share `where`. */
export interface CostedCluster {
  readonly slug: string;
  readonly name: string;
  readonly where: Where;
  readonly machineId: number;
  readonly nodes: number;
  /** Of its disks. */
  readonly disks: Amount;
  readonly knowsDisks: boolean;
}

/** Bytes of a costed cluster and of its cost in a result, measured by `npm run bench:costs`. */
export const BYTES_PER_CLUSTER = 700;

export function costedClusters(documents: readonly ClusterDocument[]): CostedCluster[] {
  const places = new Map<string, Where>();
  return documents.map(({ slug, name, provider, region, machine, shards, replicas, disks }) => {
    const key = `${provider.id} ${region.code}`;
    const where = places.get(key) ?? { provider, region };
    places.set(key, where);
    const { total, disks: parts } = clusterCost({ shards, replicas, disks }, null);
    const knowsDisks = parts.every((part) => part !== null);
    return { slug, name, where, machineId: machine.id, nodes: shards * replicas, disks: total, knowsDisks };
  });
}

export interface CostOfCluster {
  readonly cluster: CostedCluster;
  readonly machine: Priced;
  readonly total: Amount;
  readonly isComplete: boolean;
}

export interface Total {
  readonly clusters: number;
  readonly amount: Amount;
  readonly isComplete: boolean;
}

export interface OrganizationCosts {
  /** The most expensive first, then by slug. */
  readonly costs: readonly CostOfCluster[];
  readonly total: Total;
  /** The most expensive first. */
  readonly providers: readonly (Total & Pick<Where, 'provider'>)[];
  readonly regions: readonly (Total & Where)[];
  readonly machines: ReadonlyMap<number, Priced>;
}

/** Returns the costs. It calculates only what differs from the costs before. @param before of the same clusters */
export function organizationCosts(
  clusters: readonly CostedCluster[],
  priceOf: (machineId: number) => Priced,
  before?: OrganizationCosts,
): OrganizationCosts {
  const machines = new Map<number, Priced>();
  for (const { machineId } of clusters) {
    if (machines.has(machineId)) continue;
    const machine = priceOf(machineId);
    const known = before?.machines.get(machineId);
    machines.set(machineId, known && isSamePrice(known, machine) ? known : machine);
  }
  const amounts = new Map<Priced, Map<number, Amount>>();
  const amountOf = (machine: Priced, nodes: number): Amount => {
    if (!machine.price) return NOTHING;
    const ofMachine = amounts.get(machine) ?? new Map<number, Amount>();
    amounts.set(machine, ofMachine);
    const amount = ofMachine.get(nodes) ?? machineAmount(machine.price, nodes);
    ofMachine.set(nodes, amount);
    return amount;
  };
  const costOf = (cluster: CostedCluster, known?: CostOfCluster): CostOfCluster => {
    const machine = machines.get(cluster.machineId) as Priced;
    if (known?.machine === machine) return known;
    return {
      cluster,
      machine,
      total: sum([amountOf(machine, cluster.nodes), cluster.disks]),
      isComplete: machine.price !== null && cluster.knowsDisks,
    };
  };
  const costs = before
    ? before.costs.map((known) => costOf(known.cluster, known))
    : clusters.map((cluster) => costOf(cluster));
  costs.sort(isBefore);
  return { costs, machines, ...totals(costs) };
}

function isBefore(a: CostOfCluster, b: CostOfCluster): number {
  const [one, other] = [a.total.perMonth, b.total.perMonth];
  if (one !== other) return one > other ? -1 : 1;
  return a.cluster.slug < b.cluster.slug ? -1 : 1;
}

class Sum {
  clusters = 0;
  isComplete = true;
  #perMinute = 0n;
  #perMonth = 0n;

  add({ total, isComplete }: CostOfCluster): void {
    this.clusters += 1;
    this.isComplete &&= isComplete;
    this.#perMinute += total.perMinute;
    this.#perMonth += total.perMonth;
  }

  addSum(other: Sum): void {
    this.clusters += other.clusters;
    this.isComplete &&= other.isComplete;
    this.#perMinute += other.#perMinute;
    this.#perMonth += other.#perMonth;
  }

  get total(): Total {
    const amount = { perMinute: this.#perMinute, perMonth: this.#perMonth };
    return { clusters: this.clusters, amount, isComplete: this.isComplete };
  }
}

function totals(costs: readonly CostOfCluster[]): Pick<OrganizationCosts, 'total' | 'providers' | 'regions'> {
  const ofRegion = new Map<Where, Sum>();
  for (const cost of costs) {
    const { where } = cost.cluster;
    const sums = ofRegion.get(where) ?? new Sum();
    ofRegion.set(where, sums);
    sums.add(cost);
  }
  const all = new Sum();
  const ofProvider = new Map<number, { provider: Where['provider']; sum: Sum }>();
  for (const [{ provider }, sums] of ofRegion) {
    all.addSum(sums);
    const found = ofProvider.get(provider.id) ?? { provider, sum: new Sum() };
    ofProvider.set(provider.id, found);
    found.sum.addSum(sums);
  }
  const dearest = (a: Total, b: Total) =>
    a.amount.perMonth === b.amount.perMonth ? 0 : a.amount.perMonth > b.amount.perMonth ? -1 : 1;
  return {
    total: all.total,
    providers: [...ofProvider.values()]
      .map(({ provider, sum: { total } }) => ({ provider, ...total }))
      .sort((a, b) => dearest(a, b) || a.provider.id - b.provider.id),
    regions: [...ofRegion]
      .map(([where, { total }]) => ({ ...where, ...total }))
      .sort(
        (a, b) => dearest(a, b) || a.provider.id - b.provider.id || compareText(a.region.code, b.region.code),
      ),
  };
}

const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
