/** The costs of all clusters of an organization. Pure. */
import { type Amount, machineAmount, NOTHING, sum } from '../../market/market.ts';
import type { CostedCluster, CostedClusters, Where } from './costed-clusters.ts';
import { isSamePrice, type Priced } from './prices.ts';

/** Bytes of a costed cluster and of its cost in a result, measured by `npm run bench:costs`. */
export const BYTES_PER_CLUSTER = 700;

export interface CostOfCluster {
  readonly cluster: CostedCluster;
  readonly machine: Priced;
  /** The sum of the known parts. */
  readonly known: Amount;
  /** The number nearest to the amount per month: numbers are compared faster. */
  readonly rank: number;
  readonly isComplete: boolean;
}

export interface Total {
  readonly clusters: number;
  /** The sum of the known parts. */
  readonly known: Amount;
  readonly isComplete: boolean;
}

export interface OrganizationCosts {
  readonly clusters: readonly CostedCluster[];
  /** The most expensive first, then by slug. */
  readonly costs: readonly CostOfCluster[];
  readonly total: Total;
  /** The most expensive first. */
  readonly providers: readonly (Total & Pick<Where, 'provider'>)[];
  readonly regions: readonly (Total & Where)[];
  readonly machines: ReadonlyMap<number, Priced>;
  /** By region. */
  readonly sums: ReadonlyMap<Where, Sum>;
}

/** Returns the costs. It calculates only what differs from the costs before. */
export function organizationCosts(
  { clusters, machines: ids }: Pick<CostedClusters, 'clusters' | 'machines'>,
  priceOf: (machineId: number) => Priced,
  before: OrganizationCosts = NO_COSTS,
): OrganizationCosts {
  const machines = new Map<number, Priced>();
  const changed = new Set<number>();
  for (const id of ids) {
    const machine = priceOf(id);
    const known = before.machines.get(id);
    const isSame = known !== undefined && (known === machine || isSamePrice(known, machine));
    machines.set(id, isSame ? known : machine);
    if (!isSame) changed.add(id);
  }
  const hasSameClusters = before.clusters === clusters;
  if (hasSameClusters && changed.size === 0) return before;
  const costOf = costCalculator(machines);
  const sums = new Map(before.sums);
  const add = (cost: CostOfCluster, sign: 1 | -1) => {
    const { where } = cost.cluster;
    const next = plus(sums.get(where) ?? EMPTY, sumOf(cost), sign);
    if (next.clusters > 0) sums.set(where, next);
    else sums.delete(where);
  };
  const calculated = (cluster: CostedCluster): CostOfCluster => {
    const cost = costOf(cluster);
    add(cost, 1);
    return cost;
  };
  const others = new Set(hasSameClusters ? [] : clusters);
  // Their order stays, so that sorting has little to do.
  const costs: CostOfCluster[] = [];
  for (const known of before.costs) {
    const isGone = !hasSameClusters && !others.delete(known.cluster);
    if (!isGone && !changed.has(known.cluster.machineId)) costs.push(known);
    else {
      add(known, -1);
      if (!isGone) costs.push(calculated(known.cluster));
    }
  }
  for (const cluster of others) costs.push(calculated(cluster));
  costs.sort(isBefore);
  return { clusters, costs, machines, sums, ...totalsOf(sums) };
}

function costCalculator(machines: ReadonlyMap<number, Priced>): (cluster: CostedCluster) => CostOfCluster {
  const amounts = new Map<Priced, Map<number, Amount>>();
  const amountOf = (machine: Priced, nodes: number): Amount => {
    if (!machine.price) return NOTHING;
    const ofMachine = amounts.get(machine) ?? new Map<number, Amount>();
    amounts.set(machine, ofMachine);
    const amount = ofMachine.get(nodes) ?? machineAmount(machine.price, nodes);
    ofMachine.set(nodes, amount);
    return amount;
  };
  return (cluster) => {
    const machine = machines.get(cluster.machineId) as Priced;
    const known = sum([amountOf(machine, cluster.nodes), cluster.disks]);
    return {
      cluster,
      machine,
      known,
      rank: Number(known.perMonth),
      isComplete: machine.price !== null && cluster.knowsDisks,
    };
  };
}

function isBefore(a: CostOfCluster, b: CostOfCluster): number {
  if (a.rank !== b.rank) return b.rank - a.rank;
  const [one, other] = [a.known.perMonth, b.known.perMonth];
  if (one !== other) return one > other ? -1 : 1;
  return a.cluster.slug < b.cluster.slug ? -1 : 1;
}

interface Sum extends Amount {
  readonly clusters: number;
  readonly incomplete: number;
}

const EMPTY: Sum = { clusters: 0, incomplete: 0, ...NOTHING };

function plus(a: Sum, b: Sum, sign: 1 | -1 = 1): Sum {
  const by = BigInt(sign);
  return {
    clusters: a.clusters + sign * b.clusters,
    incomplete: a.incomplete + sign * b.incomplete,
    perMinute: a.perMinute + by * b.perMinute,
    perMonth: a.perMonth + by * b.perMonth,
  };
}

const sumOf = ({ known, isComplete }: CostOfCluster): Sum => ({
  clusters: 1,
  incomplete: isComplete ? 0 : 1,
  ...known,
});

const totalOf = ({ clusters, incomplete, perMinute, perMonth }: Sum): Total => ({
  clusters,
  known: { perMinute, perMonth },
  isComplete: incomplete === 0,
});

const NO_COSTS: OrganizationCosts = {
  clusters: [],
  costs: [],
  machines: new Map(),
  sums: new Map(),
  ...totalsOf(new Map()),
};

type Totals = Pick<OrganizationCosts, 'total' | 'providers' | 'regions'>;

function totalsOf(sums: ReadonlyMap<Where, Sum>): Totals {
  let all = EMPTY;
  const ofProvider = new Map<number, { provider: Where['provider']; sum: Sum }>();
  for (const [{ provider }, sum] of sums) {
    all = plus(all, sum);
    const found = ofProvider.get(provider.id);
    ofProvider.set(provider.id, { provider, sum: plus(found?.sum ?? EMPTY, sum) });
  }
  const dearest = (a: Total, b: Total) =>
    a.known.perMonth === b.known.perMonth ? 0 : a.known.perMonth > b.known.perMonth ? -1 : 1;
  return {
    total: totalOf(all),
    providers: [...ofProvider.values()]
      .map(({ provider, sum }) => ({ provider, ...totalOf(sum) }))
      .sort((a, b) => dearest(a, b) || a.provider.id - b.provider.id),
    regions: [...sums]
      .map(([where, sum]) => ({ ...where, ...totalOf(sum) }))
      .sort(
        (a, b) => dearest(a, b) || a.provider.id - b.provider.id || compareText(a.region.code, b.region.code),
      ),
  };
}

const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
