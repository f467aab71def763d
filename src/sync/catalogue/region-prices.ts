/** Prices of regions in a batch: checked, converted, and compared with the stored ones. */
import type { ConnectionDatabase } from '../../db/connection/connect.ts';
import { isSamePrice } from '../../domain/prices/price.ts';
import {
  type OfferedRegionPrice,
  REGION_ITEMS,
  type StoredRegionPrice,
  storedRegionPrice,
} from '../../domain/prices/region-price.ts';
import { regionPricesProblem } from '../../domain/prices/region-prices-check.ts';
import type { RejectedKey, RejectionCode } from '../../domain/rejected-rows.ts';
import type { UnreadItem } from '../../sources/source.ts';
import type { Pricing } from '../currency.ts';
import type { ChangedPrice, ComparedPrice } from './check-prices.ts';
import type { CatalogueSource } from './store.ts';
import { storedRegionPrices } from './stored-region-prices.ts';

export interface StatedRegionPrice {
  readonly regionCode: string;
  readonly price: OfferedRegionPrice;
}

/** What prices of regions and plans of databases need of their batch. */
export interface RegionsBatch {
  /** Regions that the batch has read. */
  readonly read: ReadonlySet<string>;
  /** Regions of the batch that exist or are new. */
  readonly known: ReadonlySet<string>;
  /** Regions that could not be read: code → reason. They keep what is stored. */
  readonly unread: ReadonlyMap<string, string>;
  readonly pricing: Pricing;
}

export interface RegionPricesBatch extends RegionsBatch {
  readonly stated: readonly StatedRegionPrice[];
  /** Items whose prices could not be read. Regions keep them. */
  readonly unreadItems: ReadonlySet<UnreadItem>;
}

export interface ComparedRegionPrices {
  /** Region code → its prices; null if the source states none any more. */
  readonly prices: ReadonlyMap<string, readonly StoredRegionPrice[] | null>;
  readonly changed: readonly ChangedPrice[];
  readonly rejected: readonly RejectedKey[];
}

/**
 * Returns the prices to store. A region with a bad price keeps its last ones. A read region without any has none, if the batch states
 * prices of other regions: a source that states none at all says nothing about them.
 */
export async function compareRegionPrices(
  db: ConnectionDatabase,
  source: CatalogueSource,
  { stated, unreadItems, read, known, unread, pricing }: RegionPricesBatch,
): Promise<ComparedRegionPrices> {
  const prices = new Map<string, readonly StoredRegionPrice[] | null>();
  const changed: ChangedPrice[] = [];
  const rejected: RejectedKey[] = [];
  if (stated.length === 0) return { prices, changed, rejected };
  const before = await storedRegionPrices(db, source.provider.id);
  const storedPrices = (code: string, offered: readonly OfferedRegionPrice[]) =>
    pricesOf(offered, before.get(code) ?? [], unreadItems, pricing);
  const byRegion = Map.groupBy(stated, ({ regionCode }) => regionCode);
  for (const [code, rows] of byRegion) {
    // The batch reports the region itself.
    if (unread.has(code)) continue;
    const offered = rows.map(({ price }) => price);
    const [bad, problem] = regionPricesProblem(offered) ?? [];
    const reject = ({ item, name }: OfferedRegionPrice, kind: RejectionCode, reason: string) =>
      rejected.push({
        key: `${code}/${item}/${name}`,
        regionCode: code,
        // No machine has this name.
        name: `${item}/${name}`,
        code: kind,
        reason,
      });
    if (!known.has(code))
      reject(
        offered[0] as OfferedRegionPrice,
        'unknown_region',
        `its region ${code} is not in the provider's list of regions`,
      );
    else if (bad) reject(bad, 'invalid', problem ?? '');
    else {
      const after = storedPrices(code, offered);
      prices.set(code, after);
      changed.push(...changesOf(code, before.get(code) ?? [], after ?? []));
    }
  }
  for (const code of before.keys())
    if (read.has(code) && !byRegion.has(code)) prices.set(code, storedPrices(code, []));
  return { prices, changed, rejected };
}

/**
 * A price without an exchange rate keeps its last value, like that of a machine; without one, it is left out. The order of prices is
 * fixed: another order of an upstream's rows is no change.
 */
function pricesOf(
  offered: readonly OfferedRegionPrice[],
  before: readonly StoredRegionPrice[],
  unreadItems: ReadonlySet<UnreadItem>,
  { currency, rates }: Pricing,
): StoredRegionPrice[] | null {
  const place = ({ item, name }: StoredRegionPrice) => `${REGION_ITEMS.indexOf(item)} ${name}`;
  const isOffered = (item: OfferedRegionPrice['item']) => offered.some((price) => price.item === item);
  const stored = [
    ...offered.flatMap((price) => {
      const last = before.find((old) => isSameName(old, price));
      const kept = last && { ...last, isDefault: price.isDefault };
      return storedRegionPrice(price, currency, rates) ?? kept ?? [];
    }),
    // A payload that was read may have a part of an item, which then replaces all of it: an item has one default.
    ...before.filter(({ item }) => unreadItems.has(item) && !isOffered(item)),
  ];
  return stored.length === 0 ? null : stored.sort((a, b) => (place(a) < place(b) ? -1 : 1));
}

type Named = Pick<OfferedRegionPrice, 'item' | 'name'>;
const isSameName = (one: Named, other: Named) => one.item === other.item && one.name === other.name;

/**
 * Returns the prices that differ. The first amount above zero is compared with the first one before, whatever their quantities; each
 * further step is compared with the price that its quantity had before.
 */
function changesOf(
  regionCode: string,
  before: readonly StoredRegionPrice[],
  after: readonly StoredRegionPrice[],
): ChangedPrice[] {
  return after.flatMap((price) => {
    const old = before.find((each) => isSameName(each, price));
    if (!old) return [];
    const type = `${price.item}/${price.name}`;
    const [first, ...further] = paidSteps(price);
    const steps = [
      { name: type, from: paidSteps(old)[0], to: first },
      ...further.map((to) => ({ name: `${type}/${to.from}`, from: stepAt(old, to.from), to })),
    ];
    return steps.flatMap(({ name, from, to }): ChangedPrice[] => {
      if (!from || !to || isSamePrice(from.price, to.price)) return [];
      const prices = { before: from.price, after: to.price };
      return [{ kind: 'region', regionCode, name, type, unit: price.unit, ...prices }];
    });
  });
}

interface PaidStep {
  readonly from: string;
  readonly price: ComparedPrice;
}

/** Returns the steps that cost something. */
function paidSteps({ tiers, source }: StoredRegionPrice): PaidStep[] {
  const { per = null, currency } = source;
  return source.tiers.flatMap(({ from, amount }, i) => {
    const price = tiers[i]?.price;
    return Number(amount) > 0 && price !== undefined ? { from, price: { amount, per, currency, price } } : [];
  });
}

/** Returns the step of a quantity; undefined if it was free. */
function stepAt(price: StoredRegionPrice, quantity: string): PaidStep | undefined {
  const step = price.source.tiers.findLast(({ from }) => Number(from) <= Number(quantity));
  return paidSteps(price).find(({ from }) => from === step?.from);
}
