/** Prices of a region besides those of its machines: storage, outgoing traffic and addresses. */
import { amountIn, type ExchangeRates, pricePerMinute, type SourcePrice } from './price.ts';

export const REGION_ITEMS = ['block_storage', 'traffic_out', 'ipv4'] as const;
export type RegionItem = (typeof REGION_ITEMS)[number];

/** One step of a price by quantity: it applies from this quantity of a month on. */
export interface OfferedTier {
  /** In `unit`, a plain decimal; `"0"` for the first step. */
  readonly from: string;
  /** A plain decimal for one unit. */
  readonly amount: string;
}

/** A price of a region, as a source states it. */
export interface OfferedRegionPrice {
  readonly item: RegionItem;
  /** The provider's own name, e.g. `gp3`. It is unique among the prices of one item. */
  readonly name: string;
  /** `recommend` and costs use this one. Each item of a region has one default. */
  readonly isDefault: boolean;
  /** The unit of the price: `GB` or `GiB` of storage or traffic, or one address. */
  readonly unit: 'GB' | 'GiB' | 'address';
  /** Of storage and addresses. Traffic is paid by quantity, whenever it flows: undefined. */
  readonly per: SourcePrice['per'] | undefined;
  /** ISO 4217 code, upper case. */
  readonly currency: string;
  /** Sorted by `from`; the first is from 0. A tier of amount 0 is an included quantity. */
  readonly tiers: readonly OfferedTier[];
}

/** A price of a region as the database stores it: an element of `regions.prices`. */
export interface StoredRegionPrice extends Omit<OfferedRegionPrice, 'tiers' | 'currency' | 'per'> {
  /** In the published currency: per minute for storage and addresses, per unit for traffic. */
  readonly tiers: readonly { readonly from: string; readonly price: string }[];
  /** As the source states it. */
  readonly source: Pick<OfferedRegionPrice, 'tiers' | 'currency' | 'per'>;
}

/** Returns a price in the published currency; undefined without an exchange rate. The amounts must be plain decimals. */
export function storedRegionPrice(
  { tiers, currency, per, ...price }: OfferedRegionPrice,
  published: string,
  rates: ExchangeRates,
): StoredRegionPrice | undefined {
  const stored: { from: string; price: string }[] = [];
  for (const { from, amount } of tiers) {
    const perUnit =
      per === undefined
        ? amountIn({ amount, currency }, published, rates)
        : pricePerMinute({ amount, per, currency }, published, rates);
    if (perUnit === undefined) return undefined;
    stored.push({ from, price: perUnit });
  }
  return { ...price, tiers: stored, source: { tiers, currency, per } };
}

/** Returns the prices in another currency, without those that have no exchange rate; null if none has one. */
export function restatedRegionPrices(
  prices: readonly StoredRegionPrice[],
  published: string,
  rates: ExchangeRates,
): readonly StoredRegionPrice[] | null {
  const restated = prices.flatMap(
    ({ tiers: _, source, ...price }) => storedRegionPrice({ ...price, ...source }, published, rates) ?? [],
  );
  return restated.length === 0 ? null : restated;
}

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
