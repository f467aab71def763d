/** What the clusters of today cost at past prices. Pure. */
import type { OrganizationCluster, PastPrice } from '../../../../db/prices/organization-costs.ts';
import type { KnownMachine } from '../../../../domain/prices/cheaper-machines.ts';
import {
  clusterCost,
  machineAmount,
  type NodePrice,
  nodePrice,
  nodePriceBy,
  shownMonth,
} from '../../../../domain/prices/cost.ts';
import { bookForTerm, type PriceBookEntry } from '../../../../domain/prices/price-book.ts';
import type { CostsAnswer } from '../api.ts';

const DAY_MS = 86_400_000;
/** Lines that a chart can distinguish. */
const MOST_LINES = 4;

/** Returns the starts of the last days in UTC, and the time itself, in milliseconds since the epoch. */
export function dayStarts(now: number, days: number): number[] {
  const today = Math.floor(now / DAY_MS) * DAY_MS;
  const starts = Array.from({ length: days }, (_, i) => today - (days - 1 - i) * DAY_MS);
  return [...starts, now];
}

/** @param times milliseconds since the epoch */
export function costsOverTime(
  clusters: readonly OrganizationCluster[],
  machines: readonly KnownMachine[],
  past: Readonly<Record<'prices' | 'caps', readonly PastPrice[]>>,
  entries: readonly PriceBookEntry[],
  times: readonly number[],
): CostsAnswer['history'] {
  const byId = new Map(machines.map((machine) => [machine.id, machine]));
  const prices = Map.groupBy(past.prices, ({ machineId }) => machineId);
  const caps = Map.groupBy(past.caps, ({ machineId }) => machineId);
  const books = times.map((at) => bookForTerm(entries, 'on_demand', at));
  const nodePriceAt = (machineId: number, i: number): NodePrice | null => {
    const at = times[i] ?? 0;
    const machine = byId.get(machineId);
    const price = valueAt(prices.get(machineId), at);
    const list = price === null ? null : nodePrice(price, valueAt(caps.get(machineId), at));
    return nodePriceBy(list, machine && books[i]?.entryOf(machine));
  };
  const perProvider = new Map<string, (bigint | null)[]>();
  for (const { provider, machineId, nodes, count, disks } of sizes(clusters)) {
    const values = perProvider.get(provider) ?? times.map((): bigint | null => 0n);
    perProvider.set(provider, values);
    const isPriced = nodePriceAt(machineId, times.length - 1) !== null;
    for (const i of times.keys()) {
      const price = nodePriceAt(machineId, i);
      const each = price ? machineAmount(price, nodes).perMonth : 0n;
      const before = values[i] ?? null;
      // A price that was unknown then makes the cost unknown. One that is still unknown is missing at each time.
      values[i] = before === null || (isPriced && !price) ? null : before + each * BigInt(count) + disks;
    }
  }
  return { times: times.map((time) => time / 1000), lines: linesOf(perProvider) };
}

interface Size {
  readonly provider: string;
  readonly machineId: number;
  readonly nodes: number;
  count: number;
  /** What the disks of all its clusters cost in a month. */
  disks: bigint;
}

/** Returns the clusters by provider, machine and number of nodes. */
function sizes(clusters: readonly OrganizationCluster[]): Iterable<Size> {
  const found = new Map<string, Size>();
  for (const cluster of clusters) {
    const { nodes, total } = clusterCost(cluster, null);
    const { provider, machineId } = cluster;
    const key = `${provider.id} ${machineId} ${nodes}`;
    const size = found.get(key) ?? { provider: provider.name, machineId, nodes, count: 0, disks: 0n };
    found.set(key, size);
    size.count += 1;
    size.disks += total.perMonth;
  }
  return found.values();
}

const valueAt = (rows: readonly PastPrice[] | undefined, at: number): string | null =>
  rows?.find(({ from, to }) => from <= at && (to === null || at < to))?.value ?? null;

type Values = readonly (bigint | null)[];

/** Returns a line for each provider, the most expensive first. The last line is the sum of all others. */
function linesOf(perProvider: ReadonlyMap<string, Values>): CostsAnswer['history']['lines'] {
  const last = (values: Values) => values.at(-1) ?? 0n;
  const sorted = [...perProvider].sort(([, a], [, b]) =>
    last(a) === last(b) ? 0 : last(a) > last(b) ? -1 : 1,
  );
  const own = sorted.length > MOST_LINES ? sorted.slice(0, MOST_LINES - 1) : sorted;
  const others = sorted.slice(own.length).map(([, values]) => values);
  const rest = others[0]?.map((_, i) => others.map((values) => values[i] ?? null).reduce(plus));
  return [...own, ...(rest ? [['other providers', rest] as const] : [])].map(([name, values]) => ({
    name,
    values: values.map((perMonth) => (perMonth === null ? null : shownMonth(perMonth))),
  }));
}

const plus = (a: bigint | null, b: bigint | null) => (a === null || b === null ? null : a + b);
