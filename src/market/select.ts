/** The rows that filters select, as a range and marks that a scan tests quickly. */
import { continentOf } from '../domain/region-country.ts';
import type { CatalogueIndex } from './catalogue-index.ts';
import type { ProviderKind } from './dictionary.ts';
import type { Filters } from './filters.ts';
import { firstWhere } from './order.ts';
import { NO_ROW } from './rows.ts';

/** A row fits if it is from `first` to before `end` and its type and its region are marked with 1. */
export interface Selection {
  readonly first: number;
  readonly end: number;
  readonly types: Uint8Array;
  readonly regions: Uint8Array;
  /** Each kind of a marked type, with the first and the last row of its marked types. */
  readonly kinds: readonly KindRows[];
}

export interface KindRows {
  readonly kind: ProviderKind;
  readonly first: number;
  readonly last: number;
}

export function select(index: CatalogueIndex, filters: Filters): Selection {
  const { rows, dictionary, kindOf, regions } = index;
  const { maxPrice, name } = filters;
  const chosen = regionsIn(index, filters);
  const isRegion = new Uint8Array(regions.length);
  for (const place of chosen) isRegion[place] = 1;
  const { ofRegion } = rows;
  const regionFirst = chosen.reduce(
    (least, place) => Math.min(least, ofRegion.first[place] as number),
    NO_ROW,
  );
  const regionLast = chosen.reduce((most, place) => Math.max(most, ofRegion.last[place] as number), 0);
  const isDear = (row: number) => (rows.prices[row] as number) > (maxPrice ?? Infinity);
  const end = firstWhere(0, Math.min(rows.count, regionLast + 1), isDear);

  const types = new Uint8Array(kindOf.length);
  const isNamed = name === undefined ? undefined : typesNamed(index, name);
  const isKind = Uint8Array.from(dictionary.kinds, kindFits(filters, providersOf(index, filters, chosen)));
  const firsts = new Uint32Array(isKind.length).fill(NO_ROW);
  const lasts = new Uint32Array(isKind.length);
  for (let type = 0; type < types.length; type++) {
    const kind = kindOf[type] as number;
    const first = rows.ofType.first[type] as number;
    if (isKind[kind] !== 1 || first >= end || (isNamed && isNamed[type] !== 1)) continue;
    types[type] = 1;
    firsts[kind] = Math.min(firsts[kind] as number, first);
    lasts[kind] = Math.max(lasts[kind] as number, rows.ofType.last[type] as number);
  }
  const kinds = dictionary.kinds.flatMap((kind, i) =>
    firsts[i] === NO_ROW ? [] : { kind, first: firsts[i] as number, last: lasts[i] as number },
  );
  return {
    first: Math.max(
      regionFirst,
      kinds.reduce((least, { first }) => Math.min(least, first), end),
    ),
    end: kinds.reduce((most, { last }) => Math.max(most, Math.min(last + 1, end)), 0),
    types,
    regions: isRegion,
    kinds,
  };
}

/** Returns the regions that the filters of places select, whatever their provider. */
export function regionsIn({ regions, regionOf }: CatalogueIndex, filters: Filters): number[] {
  const { countries, continents } = filters;
  const chosen = filters.regions?.flatMap((id) => regionOf.get(id) ?? []) ?? [...regions.keys()];
  if (!countries && !continents) return chosen;
  return chosen.filter((place) => {
    const country = regions[place]?.country;
    return (
      country !== undefined &&
      (countries?.includes(country) ?? true) &&
      (continents?.some((continent) => continent === continentOf(country)) ?? true)
    );
  });
}

/** Returns the regions of these providers; all regions if none is given. */
export function regionsOf({ regions }: CatalogueIndex, providers: Filters['providers']): ReadonlySet<number> {
  const places = [...regions.keys()];
  return new Set(places.filter((place) => providers?.includes(regions[place]?.provider.id ?? 0) ?? true));
}

/**
 * Returns the regions whose data an answer depends on: those of its rows. An answer without rows depends on every region that it
 * could have them of.
 */
export function placesBehind(index: CatalogueIndex, rows: readonly number[], filters: Filters): number[] {
  if (rows.length > 0) return [...new Set(rows.map((row) => index.rows.regions[row] as number))];
  const ofProviders = regionsOf(index, filters.providers);
  const regional = [...ofProviders.intersection(new Set(regionsIn(index, filters)))];
  // Without such a region, the sources of the providers may add one.
  return regional.length > 0 ? regional : [...ofProviders];
}

function providersOf(
  { regions }: CatalogueIndex,
  filters: Filters,
  chosen: readonly number[],
): ReadonlySet<number> | undefined {
  const providers = filters.providers && new Set(filters.providers);
  if (chosen.length === regions.length) return providers;
  const there = new Set(chosen.flatMap((place) => regions[place]?.provider.id ?? []));
  return providers ? providers.intersection(there) : there;
}

function kindFits(filters: Filters, providers: ReadonlySet<number> | undefined) {
  const { minCpu = 0, maxCpu = Infinity, minRam = 0, maxRam = Infinity } = filters;
  const { minRamPerCpu = 0, maxRamPerCpu = Infinity, architecture, cpuKind, minDisk, withSoldOut } = filters;
  return ({ providerId, ramBytes, facts }: ProviderKind): 0 | 1 => {
    const { cpu } = facts;
    const ram = (filters.isRamAsSold ? facts.ram : ramBytes) * 1000;
    const fits =
      (withSoldOut || !facts.isSoldOut) &&
      cpu >= minCpu &&
      cpu <= maxCpu &&
      ram >= minRam &&
      ram <= maxRam &&
      ram >= minRamPerCpu * cpu &&
      ram <= maxRamPerCpu * cpu &&
      (minDisk === undefined || (facts.localDisk ?? 0) >= minDisk) &&
      (architecture === undefined || facts.architecture === architecture) &&
      (cpuKind === undefined || facts.cpuKind === cpuKind) &&
      (providers?.has(providerId) ?? true);
    return fits ? 1 : 0;
  };
}

/** Returns a mark for each type: 1 if its name contains the text. */
function typesNamed({ names: { text, starts } }: CatalogueIndex, name: string): Uint8Array {
  const types = starts.length;
  const found = new Uint8Array(types);
  const part = name.toLowerCase();
  let type = -1;
  for (let at = text.indexOf(part); at !== -1; ) {
    while (type + 1 < types && (starts[type + 1] as number) <= at) type += 1;
    found[type] = 1;
    // Continues at the next name: one name may contain the text twice.
    at = type + 1 < types ? text.indexOf(part, starts[type + 1]) : -1;
  }
  return found;
}
