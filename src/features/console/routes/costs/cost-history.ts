/** What the clusters of today cost at past prices. */
import type { Database } from '../../../../db/connection/connect.ts';
import { type SQL, sql } from '../../../../db/connection/drizzle.ts';
import { array, type RowOf } from '../../../../db/connection/statements.ts';
import { bookForTerm } from '../../../../domain/prices/price-book.ts';
import {
  keptPrice,
  machineAmount,
  NOW,
  type NodePrice,
  nodePrice,
  nodePriceBy,
  type OrganizationInputs,
  type SummedCluster,
  shownMonth,
} from '../../../../market/market.ts';
import type { CostsAnswer } from '../answers.ts';

const DAY_MS = 86_400_000;
/** Lines that a chart can distinguish. */
const MOST_LINES = 4;

/** Returns the starts of the last days in UTC, and the time itself, in milliseconds since the epoch. */
export function dayStarts(now: number, days: number): number[] {
  const today = Math.floor(now / DAY_MS) * DAY_MS;
  const starts = Array.from({ length: days }, (_, i) => today - (days - 1 - i) * DAY_MS);
  return [...starts, now];
}

/** A list price of a machine. Times are milliseconds since the epoch; `to` is null for the current one. */
export interface PastPrice {
  readonly machineId: number;
  readonly value: string | null;
  readonly from: number;
  readonly to: number | null;
}

type PastPrices = Readonly<Record<'prices' | 'caps', readonly PastPrice[]>>;

/** Returns prices and monthly caps that were valid after a time. */
export async function pastPrices(
  db: Database,
  machineIds: readonly number[],
  after: Date,
): Promise<PastPrices> {
  const rows = async (table: SQL, value: SQL) => [
    ...(await db.execute<RowOf<PastPrice>>(sql`
      select h.machine_id as "machineId", ${value} as value, (extract(epoch from h.valid_from) * 1000)::float8 as "from",
        (extract(epoch from h.valid_to) * 1000)::float8 as "to"
      from ${table} h
      where h.machine_id = any(${array(machineIds, 'integer')})
        and coalesce(h.valid_to > ${after.toISOString()}::timestamptz, true)`)),
  ];
  return {
    prices: await rows(sql`machine_prices`, sql`case when h.price > 0 then h.price::text end`),
    caps: await rows(sql`machine_terms`, sql`h.terms -> 'monthly_cap' ->> 'price'`),
  };
}

/** Pure. @param times milliseconds since the epoch */
export function costsOverTime(
  { clusters, machines, entries }: Pick<OrganizationInputs, 'clusters' | 'machines' | 'entries'>,
  past: PastPrices,
  times: readonly number[],
): CostsAnswer['history'] {
  const prices = Map.groupBy(past.prices, ({ machineId }) => machineId);
  const caps = Map.groupBy(past.caps, ({ machineId }) => machineId);
  const books = times.map((at) => bookForTerm(entries, 'on_demand', at));
  const nodePriceAt = (
    { machineId, creation }: Pick<Size, 'machineId' | 'creation'>,
    i: number,
  ): NodePrice | null => {
    const at = times[i] ?? 0;
    const machine = machines.get(machineId);
    const price = valueAt(prices.get(machineId), at);
    const list = price === null ? null : nodePrice(price, valueAt(caps.get(machineId), at));
    const entry = machine && books[i]?.entryOf(machine);
    return (entry ? undefined : keptPrice(creation, NOW, at)) ?? nodePriceBy(list, entry);
  };
  const perProvider = new Map<string, readonly Known[]>();
  for (const { provider, nodes, count, disks, knowsDisks, ...size } of sizes(clusters)) {
    const before = perProvider.get(provider);
    const known = times.map((_, i): Known => {
      const price = nodePriceAt(size, i);
      const machine = price ? machineAmount(price, nodes).perMonth * BigInt(count) : 0n;
      const found = {
        perMonth: machine + disks,
        isComplete: price !== null && knowsDisks,
        isPriced: price !== null,
      };
      return before ? plus(before[i] ?? found, found) : found;
    });
    perProvider.set(provider, known);
  }
  return { times: times.map((time) => time / 1000), lines: linesOf(perProvider) };
}

/** The known part of a cost at one time. */
interface Known {
  readonly perMonth: bigint;
  readonly isComplete: boolean;
  /** The price of a machine is known. */
  readonly isPriced: boolean;
}

const plus = (a: Known, b: Known): Known => ({
  perMonth: a.perMonth + b.perMonth,
  isComplete: a.isComplete && b.isComplete,
  isPriced: a.isPriced || b.isPriced,
});

interface Size {
  readonly provider: string;
  readonly machineId: number;
  readonly nodes: number;
  readonly creation: SummedCluster['creation'];
  count: number;
  /** What the known disks of all its clusters cost in a month. */
  disks: bigint;
  knowsDisks: boolean;
}

/** Returns the clusters by provider, machine, number of nodes and price of the creation. */
function sizes(clusters: readonly SummedCluster[]): Iterable<Size> {
  const found = new Map<string, Size>();
  for (const cluster of clusters) {
    const { machineId, nodes, disks, knowsDisks, creation } = cluster;
    const { provider } = cluster.where;
    const key = `${provider.id} ${machineId} ${nodes} ${creation?.price} ${creation?.monthlyCap} ${creation?.asOf}`;
    const none = { count: 0, disks: 0n, knowsDisks: true };
    const size = found.get(key) ?? { provider: provider.name, machineId, nodes, creation, ...none };
    found.set(key, size);
    size.count += 1;
    size.disks += disks.perMonth;
    size.knowsDisks &&= knowsDisks;
  }
  return found.values();
}

const valueAt = (rows: readonly PastPrice[] | undefined, at: number): string | null =>
  rows?.find(({ from, to }) => from <= at && (to === null || at < to))?.value ?? null;

/** Returns the total, and a line for each provider, the most expensive first. The last line is the sum of all others. */
function linesOf(perProvider: ReadonlyMap<string, readonly Known[]>): CostsAnswer['history']['lines'] {
  const last = (known: readonly Known[]) => known.at(-1)?.perMonth ?? 0n;
  const sorted = [...perProvider].sort(([, a], [, b]) =>
    last(a) === last(b) ? 0 : last(a) > last(b) ? -1 : 1,
  );
  const named = sorted.length > MOST_LINES - 1 ? sorted.slice(0, MOST_LINES - 2) : sorted;
  const lines = [
    ...(sorted.length > 1 ? [['total', together(sorted)] as const] : []),
    ...named,
    ...(named.length < sorted.length
      ? [['other providers', together(sorted.slice(named.length))] as const]
      : []),
  ];
  return lines.map(([name, found]) => ({
    name,
    values: found.map(({ perMonth, isComplete }) => (isComplete ? shownMonth(perMonth) : null)),
    known: found.map(({ perMonth, isPriced }) => (isPriced ? shownMonth(perMonth) : null)),
  }));
}

function together(lines: readonly (readonly [string, readonly Known[]])[]): readonly Known[] {
  const [first = [], ...others] = lines.map(([, known]) => known);
  return first.map((known, i) => others.reduce((sum, other) => plus(sum, other[i] ?? known), known));
}
