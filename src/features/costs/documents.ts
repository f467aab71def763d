/** Costs as answers show them. Pure. */
import type { MachineFactsDocument } from '../../domain/machine.ts';
import { byColumn, type FactsDocument } from '../../domain/machine-facts.ts';
import { difference, ratio } from '../../domain/prices/price.ts';
import { writeCursor } from '../../http/protocol/page-cursor.ts';
import {
  type Amount,
  type Cheaper,
  type ClusterCost,
  type CostOfCluster,
  cheaperMachines,
  clusterCost,
  comparedMachine,
  firstWhere,
  type OneClusterInputs,
  type OrganizationCosts,
  PRICED_UNIT,
  type Price,
  type PricedCandidate,
  type PricedMachine,
  type PriceQuestion,
  type Ranked,
  type StoredCluster,
  type StoredMachine,
  shownAmount,
  shownMonth,
  shownTotal,
  type Total,
  type WantedSaving,
} from '../../market/market.ts';
import type {
  AlternativeShown,
  AlternativesDocument,
  CostDocument,
  CostsDocument,
  MachinePart,
} from './schemas.ts';

const numberOf = (amount: string | null | undefined): number | null =>
  amount === null || amount === undefined ? null : Number(amount);

const partOf = (amount: Amount | null) =>
  amount ? shownAmount(amount) : { per_minute: null, per_month: null };

const shownQuestion = ({ term, prices, at }: PriceQuestion) => ({ term, prices, at: at ?? null });

export function identityOf({ slug, name, status, provider, region }: StoredCluster): CostDocument['cluster'] {
  return { slug, name, status, provider, region: { name: region.name, code: region.code } };
}

export const shownPrice = ({ price, list, source, entry }: Price) => ({
  price: numberOf(price?.price),
  list_price: numberOf(list?.price),
  price_source: source,
  entry,
  monthly_cap: numberOf(price?.monthlyCap),
});

function shownCreation({ createdAt, creation }: StoredCluster): CostDocument['creation'] {
  const {
    price = null,
    monthlyCap = null,
    asOf = null,
    reason = 'before_history',
    keptSince = null,
  } = creation ?? {};
  return {
    created_at: createdAt,
    price: numberOf(price),
    monthly_cap: numberOf(monthlyCap),
    as_of: asOf,
    estimate: true,
    kept_since: keptSince,
    reason,
  };
}

function machinePart(machine: PricedMachine, cost: ClusterCost): MachinePart {
  const { stored, reason } = machine;
  return {
    id: stored.id,
    name: stored.name,
    cpu: stored.cpu,
    ram: stored.ram,
    ram_unit: stored.ramUnit,
    in_catalogue: stored.isPublished,
    ...shownPrice(machine),
    count: cost.nodes,
    ...partOf(cost.machine),
    reason,
  };
}

export function costDocument(
  cluster: StoredCluster,
  machine: PricedMachine,
  question: PriceQuestion,
): CostDocument {
  const cost = clusterCost(cluster, machine.price);
  return {
    cluster: identityOf(cluster),
    ...shownQuestion(question),
    shards: cluster.shards,
    replicas: cluster.replicas,
    creation: shownCreation(cluster),
    machine: machinePart(machine, cost),
    disks: cluster.disks.map(({ type, size, unit }, i) => {
      const amount = cost.disks[i] ?? null;
      return {
        type: type.name,
        price: type.price,
        price_unit: PRICED_UNIT[type.unit],
        size,
        unit,
        count: cost.nodes,
        ...partOf(amount),
        reason: amount ? null : 'no_disk_price',
      };
    }),
    ...shownTotal(cost.known, cost.isComplete),
  };
}

interface Position {
  /** Units of the amount per month. */
  readonly perMonth: bigint;
  readonly slug: string;
}

/** The text of a cursor: known cost of a month and slug. */
export const POSITION_FORM = /^(\d{1,40}) (.+)$/;

/** Returns the position in the text of a cursor. */
export function positionIn(text = ''): Position | undefined {
  const [, perMonth, slug] = POSITION_FORM.exec(text) ?? [];
  return perMonth === undefined || slug === undefined ? undefined : { perMonth: BigInt(perMonth), slug };
}

/** The clusters are to be shown, see `shownCost`. @param after the last cluster of the page before */
export function costsDocument(
  { costs, total, providers, regions }: OrganizationCosts,
  question: PriceQuestion,
  limit: number,
  after?: Position,
): Omit<CostsDocument, 'clusters'> & { readonly clusters: readonly CostOfCluster[] } {
  const start = after ? firstWhere(0, costs.length, (i) => isBehind(costs[i] as CostOfCluster, after)) : 0;
  const page = costs.slice(start, start + limit);
  const last = start + limit < costs.length ? page.at(-1) : undefined;
  return {
    ...shownQuestion(question),
    total: shownSum(total),
    providers: providers.map(({ provider, ...of }) => ({ provider, ...shownSum(of) })),
    regions: regions.map(({ provider, region: { name, code }, ...of }) => ({
      provider,
      region: { name, code },
      ...shownSum(of),
    })),
    clusters: page,
    next: last ? writeCursor(question, [], `${last.known.perMonth} ${last.cluster.slug}`) : null,
  };
}

function isBehind({ known, cluster }: CostOfCluster, { perMonth, slug }: Position): boolean {
  return known.perMonth === perMonth ? cluster.slug > slug : known.perMonth < perMonth;
}

const shownSum = ({ clusters, incomplete, known }: Total) => ({
  clusters,
  ...shownTotal(known, incomplete === 0),
});

export function shownCost({
  cluster,
  machine,
  known,
  isComplete,
}: CostOfCluster): CostsDocument['clusters'][number] {
  const { slug, name, where, nodes } = cluster;
  const { provider, region } = where;
  return {
    slug,
    name,
    provider,
    region: { name: region.name, code: region.code },
    machine: { id: machine.stored.id, name: machine.stored.name },
    price_source: machine.source,
    nodes,
    ...shownTotal(known, isComplete),
  };
}

/** Candidates of each list, the cheapest first. */
export interface Candidates {
  readonly sameRegion: readonly Ranked<PricedCandidate>[];
  readonly sameProvider: readonly Ranked<PricedCandidate>[];
  readonly anywhere: readonly Ranked<PricedCandidate>[];
}

/** @param candidates undefined if the price of the machine is unknown */
export function alternativesDocument(
  { cluster, machine }: Pick<OneClusterInputs, 'cluster' | 'machine'>,
  { term, prices }: PriceQuestion,
  wanted: WantedSaving,
  candidates: Candidates | undefined,
): AlternativesDocument {
  const cost = clusterCost({ ...cluster, disks: [] }, machine.price);
  const than = comparedMachine(machine);
  const list = (of: keyof Candidates): AlternativeShown[] =>
    than && candidates
      ? cheaperMachines(than, cost.nodes, candidates[of], wanted).map((each) =>
          shownAlternative(each, machine.stored),
        )
      : [];
  return {
    cluster: identityOf(cluster),
    term,
    prices,
    match: wanted.match,
    machine: machinePart(machine, cost),
    same_region: list('sameRegion'),
    same_provider: list('sameProvider'),
    anywhere: list('anywhere'),
  };
}

const RATIO_PLACES = 3;

function shownAlternative(
  { candidate, amount, saving }: Cheaper<PricedCandidate>,
  stored: StoredMachine,
): AlternativeShown {
  const { id, name, cpu, ram, ramUnit, node, priced, region, provider } = candidate;
  const facts = byColumn((field) => candidate[field]) as FactsDocument;
  const machine: MachineFactsDocument = {
    ...{ id, name, ram, cpu, price: Number(node.price), ram_unit: ramUnit, provider, region },
    ...facts,
  };
  return {
    machine: {
      ...machine,
      ...shownPrice(priced),
      price: Number(node.price),
      price_source: priced.source ?? 'current',
    },
    ...shownAmount(amount),
    saving_per_month: shownMonth(saving),
    compared: compared(stored, candidate),
  };
}

function compared(machine: StoredMachine, other: PricedCandidate): AlternativeShown['compared'] {
  const same = (a: string | null, b: string | null) => (a === null || b === null ? null : a === b);
  const [disk, otherDisk] = [machine.localDisk, other.localDisk];
  return {
    cpu_ratio: ratio(other.cpu, machine.cpu, RATIO_PLACES),
    memory_ratio: ratio(other.bytes, machine.bytes, RATIO_PLACES),
    same_architecture: same(machine.architecture, other.architecture),
    same_cpu_kind: same(machine.cpuKind, other.cpuKind),
    local_disk_difference: disk === null || otherDisk === null ? null : difference(otherDisk, disk),
  };
}
