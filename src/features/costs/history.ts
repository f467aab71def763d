/** The cost of a cluster of today at the prices of the past, as steps. Pure. */
import { bookForTerm, type PriceBookEntry } from '../../domain/prices/price-book.ts';
import {
  clusterCost,
  keptPrice,
  type NodePrice,
  type Price,
  type PriceHistory,
  type PriceQuestion,
  priceOf,
  type StoredCluster,
  type StoredMachine,
  shownTotal,
} from '../../market/market.ts';
import { shownPrice } from './documents.ts';
import type { CostHistoryDocument } from './schemas.ts';

/** RFC 3339 with microseconds, from `from` to before `to`. */
export interface TimeSpan {
  readonly from: string | undefined;
  readonly to: string | undefined;
}

type CostStep = CostHistoryDocument['steps'][number];
type Begun = TimeSpan & { readonly from: string };

interface Asked {
  readonly question: PriceQuestion;
  /** Of the price book, ended ones included. */
  readonly entries: readonly PriceBookEntry[];
  readonly span: Begun;
}

/** Returns the steps, oldest first. */
export function costHistory(
  cluster: StoredCluster,
  machine: StoredMachine,
  history: PriceHistory,
  { question, entries, span }: Asked,
): CostStep[] {
  const own = question.prices === 'list' ? [] : entries;
  const { price: kept = null, keptSince = null, asOf = null } = cluster.creation ?? {};
  const times = boundaries(history, own, span, kept === null || keptSince === null ? null : asOf);
  const steps: CostStep[] = [];
  for (const [i, from] of times.entries()) {
    const asked = { ...question, at: from };
    const price = priceAt(machine, history, asked, own, keptPrice(cluster.creation, asked, Date.parse(from)));
    const { known, isComplete } = clusterCost(cluster, price.price);
    const step = { ...shownPrice(price), ...shownTotal(known, isComplete) };
    const to = times[i + 1] ?? span.to ?? null;
    const last = steps.at(-1);
    // A change of another term does not change this cost.
    if (last && isSameStep(last, step)) steps[steps.length - 1] = { ...last, to };
    else steps.push({ from, to, ...step });
  }
  return steps;
}

/** Returns the times at which a price may begin, oldest first. The first one is the begin of the span or of the first price. */
function boundaries(
  { prices, terms }: PriceHistory,
  entries: readonly PriceBookEntry[],
  { from, to }: Begun,
  keptFrom: string | null,
) {
  const begins = [...prices, ...terms].map((row) => row.from).sort();
  const [first = from] = begins;
  const start = first > from ? first : from;
  const changes = [
    ...begins,
    ...prices.flatMap((row) => row.to ?? []),
    ...(keptFrom === null ? [] : [keptFrom]),
    ...entries.flatMap((entry) => [entry.from, entry.to ?? []].flat().map(withMicroseconds)),
  ];
  const isInside = (time: string) => time >= start && (to === undefined || time < to);
  return begins.length === 0 && keptFrom === null
    ? []
    : [...new Set([start, ...changes].filter(isInside))].sort();
}

/** Times of clusters and prices have microseconds, so that texts compare as times do. */
export const withMicroseconds = (time: string | number): string =>
  new Date(time).toISOString().replace('Z', '000Z');

function priceAt(
  machine: StoredMachine,
  { prices, terms }: PriceHistory,
  { term, at }: PriceQuestion & { readonly at: string },
  entries: readonly PriceBookEntry[],
  kept: NodePrice | undefined,
): Price {
  const applies = (row: { readonly from: string; readonly to: string | null }) =>
    row.from <= at && (row.to === null || row.to > at);
  const onDemand = prices.find(applies)?.price ?? null;
  const stored = terms.find(applies)?.terms;
  const list =
    term === 'on_demand'
      ? {
          price: onDemand === null || Number(onDemand) <= 0 ? null : onDemand,
          monthlyCap: stored?.monthly_cap?.price ?? null,
        }
      : { price: stored?.terms[term]?.price ?? null, monthlyCap: null };
  return priceOf({ ...machine, ...list }, term, bookForTerm(entries, term, Date.parse(at)), kept);
}

function isSameStep(a: Omit<CostStep, 'from' | 'to'>, b: Omit<CostStep, 'from' | 'to'>): boolean {
  return (
    a.price === b.price &&
    a.list_price === b.list_price &&
    a.known_per_month === b.known_per_month &&
    a.price_source === b.price_source &&
    a.entry === b.entry
  );
}
