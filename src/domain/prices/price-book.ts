/** The own prices of an organization: entries, and which of them gives a price. See docs/decisions/0095. */
import type { PriceTerm } from './term.ts';

/** One entry of a price book. It selects machines, and has either a percentage or a fixed price. */
export interface PriceBookEntry {
  readonly id: number;
  /** Undefined: every provider. */
  readonly providerId: number | undefined;
  readonly regionId: number | undefined;
  /** Machines whose name starts with this text, e.g. `m5.`. */
  readonly family: string | undefined;
  readonly machineId: number | undefined;
  /** Undefined: every term, `on_demand` included. */
  readonly term: PriceTerm | undefined;
  /** Percent off the list price, a plain decimal above 0 and at most 100. */
  readonly discount: string | undefined;
  /** Per minute in the published currency, a plain decimal. Only with `machineId`. */
  readonly price: string | undefined;
  /** RFC 3339, UTC. The entry applies from `from` to before `to`; undefined: without end. */
  readonly from: string;
  readonly to: string | undefined;
}

/** What entries select machines by. */
export interface SelectedMachine {
  readonly id: number;
  readonly name: string;
  readonly regionId: number;
  readonly providerId: number;
}

/** The entries for one term at one time, prepared for many machines. */
export interface BookForTerm {
  /** The entries that apply, the most specific one first. */
  readonly entries: readonly PriceBookEntry[];
  /** Returns the entry that gives the machine's own price; undefined if the list price applies. */
  entryOf(machine: SelectedMachine): PriceBookEntry | undefined;
}

type Selector = Pick<PriceBookEntry, 'providerId' | 'regionId' | 'family' | 'machineId' | 'term'>;

/** Returns the next time at which an entry begins or ends; undefined for none. Times are milliseconds since the epoch. */
export function nextChange(entries: readonly PriceBookEntry[], at: number): number | undefined {
  const times = entries.flatMap(({ from, to }) => [from, ...(to === undefined ? [] : [to])]).map(Date.parse);
  const next = Math.min(...times.filter((time) => time > at));
  return Number.isFinite(next) ? next : undefined;
}

/**
 * Compares entries that select the same machine: negative if `a` wins. A machine wins over a family, a longer family over a
 * shorter one, then a region, a provider, and last a named term.
 */
function compareEntries(a: Selector, b: Selector): number {
  const given = (value: unknown) => (value === undefined ? 0 : 1);
  return (
    given(b.machineId) - given(a.machineId) ||
    (b.family?.length ?? 0) - (a.family?.length ?? 0) ||
    given(b.regionId) - given(a.regionId) ||
    given(b.providerId) - given(a.providerId) ||
    given(b.term) - given(a.term)
  );
}

/** Returns true if the entry selects the machine at this term. */
function isSelected(entry: Selector, machine: SelectedMachine, term: PriceTerm): boolean {
  const { providerId, regionId, family, machineId } = entry;
  return (
    (entry.term ?? term) === term &&
    (machineId ?? machine.id) === machine.id &&
    (regionId ?? machine.regionId) === machine.regionId &&
    (providerId ?? machine.providerId) === machine.providerId &&
    machine.name.startsWith(family ?? '')
  );
}

/** Prepares entries for lookups: each takes the same time for one entry and for hundreds. @param at milliseconds since the epoch */
export function bookForTerm(entries: readonly PriceBookEntry[], term: PriceTerm, at: number): BookForTerm {
  const applying = entries
    .filter(({ from, to }) => Date.parse(from) <= at && (to === undefined || at < Date.parse(to)))
    .filter((entry) => (entry.term ?? term) === term)
    .sort(compareEntries);
  const ofMachine = grouped(applying, ({ machineId }) => machineId);
  const others = applying.filter(({ machineId }) => machineId === undefined);
  const ofFamily = grouped(others, ({ family }) => family);
  const lengths = [...new Set([...ofFamily.keys()].map(({ length }) => length))].sort((a, b) => b - a);
  const broad = others.filter(({ family }) => family === undefined);
  const ofRegion = grouped(broad, ({ regionId }) => regionId);
  const anywhere = broad.filter(({ regionId }) => regionId === undefined);
  const ofProvider = grouped(anywhere, ({ providerId }) => providerId);
  const ofAll = anywhere.filter(({ providerId }) => providerId === undefined);

  /** Yields groups of entries from the most specific one. */
  function* groups({ id, name, regionId, providerId }: SelectedMachine) {
    yield ofMachine.get(id);
    for (const length of lengths) yield ofFamily.get(name.slice(0, length));
    yield ofRegion.get(regionId);
    yield ofProvider.get(providerId);
    yield ofAll;
  }
  return {
    entries: applying,
    entryOf(machine) {
      for (const group of groups(machine)) {
        const found = group?.find((entry) => isSelected(entry, machine, term));
        if (found) return found;
      }
      return undefined;
    },
  };
}

function grouped<K>(
  entries: readonly PriceBookEntry[],
  keyOf: (entry: PriceBookEntry) => K | undefined,
): Map<K, PriceBookEntry[]> {
  const found = new Map<K, PriceBookEntry[]>();
  for (const entry of entries) {
    const key = keyOf(entry);
    if (key !== undefined) found.set(key, [...(found.get(key) ?? []), entry]);
  }
  return found;
}

/** Returns a text that is equal for entries that select the same machines and term. */
export function selectorOf({ providerId, regionId, family, machineId, term }: Selector): string {
  return JSON.stringify([providerId ?? 0, regionId ?? 0, family ?? '', machineId ?? 0, term ?? '']);
}

/** Returns the first two entries of one selector whose times overlap; undefined for none. */
export function overlap<T extends Selector & Pick<PriceBookEntry, 'from' | 'to'>>(
  entries: readonly T[],
): readonly [earlier: T, later: T] | undefined {
  const last = new Map<string, T>();
  for (const entry of entries.toSorted((a, b) => Date.parse(a.from) - Date.parse(b.from))) {
    const key = selectorOf(entry);
    const before = last.get(key);
    if (before && (before.to === undefined || Date.parse(before.to) > Date.parse(entry.from)))
      return [before, entry];
    last.set(key, entry);
  }
  return undefined;
}
