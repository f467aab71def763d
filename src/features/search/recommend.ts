/** The cheapest machine of each provider that has what is asked for. */
import type { CatalogueIndex } from './catalogue-index.ts';
import type { Filters } from './question.ts';
import { select } from './search.ts';

/** @returns row numbers, the cheapest first; at the same price by id */
export function cheapestOfEach(index: CatalogueIndex, filters: Filters): number[] {
  const { prices, ids } = index.rows;
  const isBefore = (a: number, b: number): boolean => {
    const [one, other] = [prices[a] as number, prices[b] as number];
    return one < other || (one === other && (ids[a] as number) < (ids[b] as number));
  };
  const { groups, fits } = select(index, filters);
  const best = new Map<number, number>();
  for (const { group, first, end } of groups) {
    const provider = index.dictionary.groups[group]?.providerId ?? 0;
    const known = best.get(provider);
    for (let row = first; row < end && (known === undefined || isBefore(row, known)); row++) {
      if (fits && !fits(row)) continue;
      best.set(provider, row);
      break;
    }
  }
  return [...best.values()].sort((a, b) => (isBefore(a, b) ? -1 : 1));
}
