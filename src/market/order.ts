/** The keys of orders, and binary search in them. */
import type { ProviderKind } from './dictionary.ts';
import type { Sort } from './filters.ts';

export interface Keyed {
  readonly prices: Float64Array;
  readonly types: Uint32Array;
  readonly kindOf: Uint32Array;
  readonly kinds: readonly ProviderKind[];
}

export function keyOf(by: Sort['by'], { prices, types, kindOf, kinds }: Keyed): (row: number) => number {
  if (by === 'price') return (row) => prices[row] as number;
  const isCpu = by === 'cpu' || by === 'price_per_cpu';
  const sizes = Float64Array.from(kinds, ({ facts, ramBytes }) => (isCpu ? facts.cpu : ramBytes));
  const size = (row: number) => sizes[kindOf[types[row] as number] as number] as number;
  return by === 'cpu' || by === 'ram' ? size : (row) => (prices[row] as number) / size(row);
}

/**
 * Returns the first place from `from` to before `to` for which `holds` is true; `to` for none. If `holds` is true for a place,
 * it must be true for all later ones.
 */
export function firstWhere(from: number, to: number, holds: (place: number) => boolean): number {
  let low = from;
  let step = 1;
  // First in doubling steps, because the place is often near `from`.
  for (; low + step < to && !holds(low + step - 1); step *= 2) low += step;
  let high = Math.min(to, low + step);
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (holds(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}
