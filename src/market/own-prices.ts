/** The own prices of an organization for the rows of an index, whose list prices may be those of any term. */

import { percentOff } from '../domain/prices/price.ts';
import type { BookForTerm, PriceBookEntry } from '../domain/prices/price-book.ts';
import { type CatalogueIndex, indexedMachine, selectedMachine } from './catalogue-index.ts';
import { nodePrice, nodePriceBy } from './costs/cost.ts';
import { rowOf } from './find-machine.ts';

export interface OwnPrices {
  /** Identifies the entries that apply. */
  readonly key: string;
  /** Rows with an entry for their machine alone. */
  readonly singled: ReadonlySet<number>;
  /** The lowest share of the list price that any other row costs. */
  readonly least: number;
  /** Returns the share of the list price that such a row costs, as a nearby double. */
  share(row: number): number;
  /** Returns the entry that gives the own price of any row; undefined if the list price applies. */
  entryOf(row: number): PriceBookEntry | undefined;
  /** Returns the exact own price of any row, as the nearest double; undefined if the list price applies. */
  priceOf(row: number): number | undefined;
}

/** Returns undefined if no entry applies. */
export function ownPrices(index: CatalogueIndex, book: BookForTerm): OwnPrices | undefined {
  if (book.entries.length === 0) return undefined;
  const { prices } = index.rows;
  const machines = book.entries.flatMap(({ machineId }) => machineId ?? []);
  const entryOf = (row: number) => book.entryOf(selectedMachine(indexedMachine(index, row)));
  const broad = book.entries.flatMap(({ machineId, regionId, providerId, family, discount = '0' }) =>
    machineId === undefined ? { regionId, providerId, family, share: Number(percentOff('1', discount)) } : [],
  );
  return {
    key: book.entries.map(({ id }) => id).join(' '),
    singled: new Set(machines.flatMap((id) => rowOf(index.rows, id) ?? [])),
    least: Math.min(1, ...broad.map(({ share }) => share)),
    share: shareOfRow(index, broad),
    entryOf,
    priceOf(row) {
      const entry = entryOf(row);
      return entry && Number(nodePriceBy(nodePrice(prices[row] as number, null), entry).price);
    },
  };
}

/** An entry without a machine. */
interface Broad extends Pick<PriceBookEntry, 'regionId' | 'providerId' | 'family'> {
  readonly share: number;
}

/** @param broad the most specific one first */
function shareOfRow(index: CatalogueIndex, broad: readonly Broad[]): (row: number) => number {
  const { rows, regions } = index;
  const fits = ({ regionId, providerId }: Broad, place: number) => {
    const { region, provider } = regions[place] ?? {};
    return (regionId ?? region?.id) === region?.id && (providerId ?? provider?.id) === provider?.id;
  };
  const anyName = broad.filter(({ family }) => family === undefined);
  const ofRegion = Float64Array.from(regions, (_, place) => {
    const entry = anyName.find((each) => fits(each, place));
    return entry ? entry.share : 1;
  });
  const ofFamily = broad.filter(({ family }) => family !== undefined);
  if (ofFamily.length === 0) return (row) => ofRegion[rows.regions[row] as number] as number;
  const familiesOf = familiesOfTypes(index, ofFamily);
  return (row) => {
    const place = rows.regions[row] as number;
    for (const entry of familiesOf(rows.types[row] as number)) if (fits(entry, place)) return entry.share;
    return ofRegion[place] as number;
  };
}

/** Returns a function that finds the entries whose family begins a type's name. It remembers the types that searches meet. */
function familiesOfTypes(
  { dictionary: { names }, kindOf }: CatalogueIndex,
  ofFamily: readonly Broad[],
): (type: number) => readonly Broad[] {
  const lengths = [...new Set(ofFamily.map(({ family = '' }) => family.length))];
  const known = new Set(ofFamily.map(({ family }) => family));
  const lists: (readonly Broad[])[] = [[], []];
  /** By type: 0 before its first use, 1 for none, or a place in `lists`. */
  const placeOf = new Uint32Array(kindOf.length);
  return (type) => {
    if (placeOf[type] === 0) {
      const name = names[type] as string;
      const begins = lengths.some((length) => known.has(name.slice(0, length)));
      placeOf[type] = begins
        ? lists.push(ofFamily.filter(({ family = '' }) => name.startsWith(family))) - 1
        : 1;
    }
    return lists[placeOf[type] as number] as readonly Broad[];
  };
}
