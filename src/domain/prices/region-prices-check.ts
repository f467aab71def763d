/** Checks the prices that a source states for one region. */
import { type OfferedRegionPrice, REGION_ITEMS } from './region-price.ts';

/** A decimal that is not negative. */
const PLAIN = /^\d+(\.\d+)?$/;

/** Returns the first rule that the prices of a region break, with the price; undefined if all are usable. */
export function regionPricesProblem(
  prices: readonly OfferedRegionPrice[],
): readonly [price: OfferedRegionPrice, problem: string] | undefined {
  for (const price of prices) {
    const problem = problemOf(price);
    if (problem !== undefined) return [price, problem];
  }
  for (const item of REGION_ITEMS) {
    const ofItem = prices.filter((price) => price.item === item);
    const [first] = ofItem;
    if (!first) continue;
    const defaults = ofItem.filter(({ isDefault }) => isDefault).length;
    if (defaults !== 1) return [first, `one price must be the default; it is ${defaults}`];
    const repeated = ofItem.find(({ name }, i) => ofItem.findIndex((other) => other.name === name) !== i);
    if (repeated) return [repeated, 'a name must occur once'];
  }
  return undefined;
}

function problemOf({ item, unit, per, tiers }: OfferedRegionPrice): string | undefined {
  if ((item === 'ipv4') !== (unit === 'address')) return `unit does not fit ${item}; it is ${unit}`;
  if ((item === 'traffic_out') !== (per === undefined))
    return `only traffic has no period; it is ${per ?? 'none'}`;
  if (tiers[0] === undefined || Number(tiers[0].from) !== 0)
    return `the first tier must be from 0; it is ${tiers[0]?.from ?? 'missing'}`;
  const bad = tiers.find(({ from, amount }) => !PLAIN.test(from) || !PLAIN.test(amount));
  if (bad) return `a tier must have decimals that are not negative; it is ${bad.amount} from ${bad.from}`;
  const unsorted = tiers.find(({ from }, i) => i > 0 && Number(from) <= Number(tiers[i - 1]?.from));
  return unsorted && `tiers must ascend; it is ${unsorted.from} after a larger one`;
}
