import type { CatalogueIndex } from '../../snapshot/catalogue/catalogue-index.ts';
import type { Filters } from '../../snapshot/catalogue/filters.ts';
import { select } from '../../snapshot/catalogue/select.ts';

/** Returns the row of the cheapest machine of each provider that fits, by price, then id. */
export function cheapestOfEach(index: CatalogueIndex, filters: Filters): number[] {
  const { rows, regions } = index;
  const { first, end, types, regions: isRegion, kinds } = select(index, filters);
  const providers = new Set(kinds.map(({ kind }) => kind.providerId));
  const found: number[] = [];
  for (let row = first; row < end && providers.size > 0; row++) {
    const region = rows.regions[row] as number;
    if (types[rows.types[row] as number] !== 1 || isRegion[region] !== 1) continue;
    found.push(row);
    const id = regions[region]?.provider.id ?? 0;
    providers.delete(id);
    for (const [place, { provider }] of regions.entries()) if (provider.id === id) isRegion[place] = 0;
  }
  return found;
}
