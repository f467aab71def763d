/** Costs as answers show them. Pure. */
import type { ClusterDocument } from '../../domain/cluster.ts';
import { writeCursor } from '../../http/protocol/page-cursor.ts';
import {
  type Amount,
  type ClusterCost,
  clusterCost,
  firstWhere,
  PRICED_UNIT,
  shownAmount,
  shownTotal,
} from '../../market/market.ts';
import type { CostOfCluster, OrganizationCosts, Total } from './organization-costs.ts';
import type { Price, Priced, PriceQuestion } from './prices.ts';
import type { CostDocument, CostsDocument, MachinePart } from './schema.ts';

const partOf = (amount: Amount | null) =>
  amount ? shownAmount(amount) : { per_minute: null, per_month: null };

const numberOf = (amount: string | null | undefined): number | null =>
  amount === null || amount === undefined ? null : Number(amount);

const shownQuestion = ({ term, prices, at }: PriceQuestion) => ({ term, prices, at: at ?? null });

export function identityOf({ slug, name, status, provider, region }: ClusterDocument) {
  return { slug, name, status, provider, region };
}

export const shownPrice = ({ price, list, source, entry }: Price) => ({
  price: numberOf(price?.price),
  list_price: numberOf(list?.price),
  price_source: source,
  entry,
  monthly_cap: numberOf(price?.monthlyCap),
});

export function machinePart({ machine }: ClusterDocument, priced: Priced, cost: ClusterCost): MachinePart {
  const { id, cpu, ram, ram_unit } = machine;
  return {
    id,
    name: priced.name,
    cpu,
    ram,
    ram_unit,
    in_catalogue: priced.isPublished,
    ...shownPrice(priced),
    count: cost.nodes,
    ...partOf(cost.machine),
    reason: priced.reason,
  };
}

export function costDocument(
  cluster: ClusterDocument,
  machine: Priced,
  question: PriceQuestion,
): CostDocument {
  const cost = clusterCost(cluster, machine.price);
  return {
    cluster: identityOf(cluster),
    ...shownQuestion(question),
    shards: cluster.shards,
    replicas: cluster.replicas,
    machine: machinePart(cluster, machine, cost),
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

/** @param after the last cluster of the page before */
export function costsDocument(
  { costs, total, providers, regions }: OrganizationCosts,
  question: PriceQuestion,
  limit: number,
  after: Position | undefined,
): CostsDocument {
  const start = after ? firstWhere(0, costs.length, (i) => isBehind(costs[i] as CostOfCluster, after)) : 0;
  const page = costs.slice(start, start + limit);
  const last = start + limit < costs.length ? page.at(-1) : undefined;
  return {
    ...shownQuestion(question),
    total: shownSum(total),
    providers: providers.map(({ provider, ...of }) => ({ provider, ...shownSum(of) })),
    regions: regions.map(({ provider, region, ...of }) => ({ provider, region, ...shownSum(of) })),
    clusters: page.map(shownCost),
    next: last ? writeCursor(question, [], `${last.known.perMonth} ${last.cluster.slug}`) : null,
  };
}

function isBehind({ known, cluster }: CostOfCluster, { perMonth, slug }: Position): boolean {
  return known.perMonth === perMonth ? cluster.slug > slug : known.perMonth < perMonth;
}

const shownSum = ({ clusters, known, isComplete }: Total) => ({
  clusters,
  ...shownTotal(known, isComplete),
});

function shownCost({ cluster, machine, known, isComplete }: CostOfCluster) {
  const { slug, name, where, nodes } = cluster;
  return {
    slug,
    name,
    ...where,
    machine: { id: machine.id, name: machine.name },
    nodes,
    ...shownTotal(known, isComplete),
  };
}
