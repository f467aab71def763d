/** The cost of a cluster of today at the prices of the past, as steps. Pure. */
import type { PriceHistory } from '../../db/costs.ts';
import type { ClusterDocument } from '../../domain/cluster.ts';
import { clusterCost, shownAmount } from '../../domain/cost.ts';
import { type Priced, type PriceQuestion, pricedBy } from './prices.ts';
import type { CostHistoryDocument, CostStep } from './schema.ts';
import { identityOf, shownPrice } from './shown-costs.ts';

/** RFC 3339, from `from` to before `to`. */
export interface TimeSpan {
  readonly from: string | undefined;
  readonly to: string | undefined;
}

export function costHistory(
  cluster: ClusterDocument,
  history: PriceHistory,
  question: PriceQuestion,
  span: TimeSpan & { readonly from: string },
): CostHistoryDocument {
  const times = boundaries(history, span);
  const steps: CostStep[] = [];
  for (const [i, from] of times.entries()) {
    const machine = machineAt(cluster, history, question, from);
    const { total, isComplete } = clusterCost(cluster, machine.price);
    const step = { ...shownPrice(machine), ...shownAmount(total), complete: isComplete };
    const to = times[i + 1] ?? span.to ?? null;
    const last = steps.at(-1);
    // A change of another term is no change of this cost.
    if (last && isSameStep(last, step)) steps[steps.length - 1] = { ...last, to };
    else steps.push({ from, to, ...step });
  }
  const { term, prices } = question;
  return { cluster: identityOf(cluster), term, prices, steps };
}

/** Returns the times at which a price may begin, oldest first. The first one is the begin of the span or of the first price. */
function boundaries(
  { prices, terms }: PriceHistory,
  { from, to }: TimeSpan & { readonly from: string },
): string[] {
  const isInside = (time: string) => time > from && (to === undefined || time < to);
  const begins = [...prices, ...terms].map((row) => row.from);
  const ends = prices.flatMap((row) => row.to ?? []);
  const inside = [...begins, ...ends].filter(isInside);
  const isPricedAtBegin = begins.some((time) => time <= from);
  return [...new Set([...(isPricedAtBegin ? [from] : []), ...inside])].sort();
}

function machineAt(
  { machine }: ClusterDocument,
  { prices, terms }: PriceHistory,
  question: PriceQuestion,
  at: string,
): Priced {
  const applies = (row: { readonly from: string; readonly to: string | null }) =>
    row.from <= at && (row.to === null || row.to > at);
  const price = prices.find(applies)?.price ?? null;
  return pricedBy({ id: machine.id, price, terms: terms.find(applies)?.terms ?? null }, question);
}

function isSameStep(a: Omit<CostStep, 'from' | 'to'>, b: Omit<CostStep, 'from' | 'to'>): boolean {
  return (
    a.price === b.price &&
    a.per_month === b.per_month &&
    a.price_source === b.price_source &&
    a.entry === b.entry
  );
}
