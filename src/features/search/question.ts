/** The identity of a question, and the units of its memory. Pure. */
import type { MachineDocument } from '../../domain/machine.ts';
import type { PriceTerm } from '../../domain/prices/term.ts';
import type { Filters, Sort } from '../../market/market.ts';

/** The unit of memory in filters: `AsSold` is the unit in which each machine is sold. */
export const RAM_UNITS = ['AsSold', 'Binary', 'Decimal'] as const satisfies readonly (
  | 'AsSold'
  | MachineDocument['ram_unit']
)[];
export type RamUnit = (typeof RAM_UNITS)[number];

/** Returns the identity of a question for its cursors. Equal filters have equal identities in any order. */
export function questionOf(filters: Filters, sort: Sort, term: PriceTerm) {
  const set = (ids: readonly number[] | undefined) => ids && [...new Set(ids)].sort((a, b) => a - b);
  const words = (given: readonly string[] | undefined) => given && [...new Set(given)].sort();
  const { providers, regions, countries, continents, name } = filters;
  const plain = {
    ...filters,
    providers: set(providers),
    regions: set(regions),
    countries: words(countries),
    continents: words(continents),
    name: name?.toLowerCase(),
  };
  const entries = Object.entries(plain).filter(([, value]) => value !== undefined);
  return [entries.sort(([a], [b]) => (a < b ? -1 : 1)), sort.by, sort.descending, term];
}
