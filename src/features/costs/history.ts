/** The cost of a cluster of today at the prices of the past, as steps. Pure. */
import type { PriceHistory } from '../../db/prices/costs.ts';
import type { ClusterDocument } from '../../domain/cluster.ts';
import { bookForTerm, type PriceBookEntry, type SelectedMachine } from '../../domain/prices/price-book.ts';
import { clusterCost, selectedMachine, shownTotal } from '../../market/market.ts';
import type { Inputs } from './inputs.ts';
import { type Price, storedPrice, unknownPrice } from './prices.ts';
import type { CostHistoryDocument } from './schema.ts';
import { identityOf, shownPrice } from './shown-costs.ts';

/** RFC 3339 with microseconds, from `from` to before `to`. */
export interface TimeSpan {
  readonly from: string | undefined;
  readonly to: string | undefined;
}

type CostStep = CostHistoryDocument['steps'][number];
type Begun = TimeSpan & { readonly from: string };

export function costHistory(
  cluster: ClusterDocument,
  history: PriceHistory,
  inputs: Inputs,
  span: Begun,
): CostHistoryDocument {
  const { entries, question } = inputs;
  const times = boundaries(history, entries, span);
  const machine = selected(cluster.machine.id, inputs);
  const steps: CostStep[] = [];
  for (const [i, from] of times.entries()) {
    const price = machine ? priceAt(machine, history, inputs, from) : unknownPrice('not_listed');
    const { known, isComplete } = clusterCost(cluster, price.price);
    const step = { ...shownPrice(price), ...shownTotal(known, isComplete) };
    const to = times[i + 1] ?? span.to ?? null;
    const last = steps.at(-1);
    // A change of another term does not change this cost.
    if (last && isSameStep(last, step)) steps[steps.length - 1] = { ...last, to };
    else steps.push({ from, to, ...step });
  }
  return { cluster: identityOf(cluster), term: question.term, prices: question.prices, steps };
}

/** Returns the times at which a price may begin, oldest first. The first one is the begin of the span or of the first price. */
function boundaries(
  { prices, terms }: PriceHistory,
  entries: readonly PriceBookEntry[],
  { from, to }: Begun,
) {
  const begins = [...prices, ...terms].map((row) => row.from).sort();
  const [first = from] = begins;
  const start = first > from ? first : from;
  const changes = [
    ...begins,
    ...prices.flatMap((row) => row.to ?? []),
    ...entries.flatMap((entry) => [entry.from, entry.to ?? []].flat().map(withMicroseconds)),
  ];
  const isInside = (time: string) => time >= start && (to === undefined || time < to);
  return begins.length === 0 ? [] : [...new Set([start, ...changes].filter(isInside))].sort();
}

const withMicroseconds = (time: string): string => new Date(time).toISOString().replace('Z', '000Z');

interface Selected extends SelectedMachine {
  readonly isListed: boolean;
}

function selected(id: number, { machines, stored }: Inputs): Selected | undefined {
  const found = machines.get(id);
  return found ? { ...selectedMachine(found), isListed: true } : stored.get(id);
}

function priceAt(
  machine: Selected,
  { prices, terms }: PriceHistory,
  { question, entries }: Inputs,
  at: string,
): Price {
  const applies = (row: { readonly from: string; readonly to: string | null }) =>
    row.from <= at && (row.to === null || row.to > at);
  const then = {
    ...machine,
    price: prices.find(applies)?.price ?? null,
    terms: terms.find(applies)?.terms ?? null,
  };
  return storedPrice(then, question.term, bookForTerm(entries, question.term, Date.parse(at)));
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
