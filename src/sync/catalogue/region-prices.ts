/** Prices of regions in a batch: checked, converted, and compared with the stored ones. */
import type { ConnectionDatabase } from '../../db/connection/connect.ts';
import { type IsAccepted, readAccepted, storedRegionPrices } from '../../db/sync/catalogue/region-prices.ts';
import type { CatalogueSource } from '../../db/sync/catalogue/write.ts';
import { priceRatio } from '../../domain/prices/price.ts';
import {
  type OfferedRegionPrice,
  REGION_ITEMS,
  type StoredRegionPrice,
  storedRegionPrice,
} from '../../domain/prices/region-price.ts';
import { comparedAmount, regionPricesProblem } from '../../domain/prices/region-prices-check.ts';
import type { RejectedKey, RejectionCode } from '../../domain/rejected-rows.ts';
import type { UnreadItem } from '../../sources/source.ts';
import type { Pricing } from '../currency.ts';

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
  readonly approved: boolean;
}

export interface RegionPricesBatch extends RegionsBatch {
  readonly stated: readonly StatedRegionPrice[];
  /** Items whose prices could not be read. Regions keep them. */
  readonly unreadItems: ReadonlySet<UnreadItem>;
  readonly maxRatio: number;
}

export interface ComparedRegionPrices {
  /** Region code → its prices; null if the source states none any more. */
  readonly prices: ReadonlyMap<string, readonly StoredRegionPrice[] | null>;
  readonly rejected: readonly RejectedKey[];
}

/**
 * Returns the prices to store. A region with a bad price or a jump keeps its last ones. A read region without any has none,
 * if the batch states prices of other regions: a source that states none at all says nothing about them.
 */
export async function compareRegionPrices(
  db: ConnectionDatabase,
  source: CatalogueSource,
  { stated, unreadItems, read, known, unread, pricing, maxRatio, approved }: RegionPricesBatch,
): Promise<ComparedRegionPrices> {
  const prices = new Map<string, readonly StoredRegionPrice[] | null>();
  const rejected: RejectedKey[] = [];
  if (stated.length === 0) return { prices, rejected };
  const before = await storedRegionPrices(db, source.provider.id);
  const isAccepted = approved ? undefined : await readAccepted(db, source.id);
  const keptOf = (code: string) => before.get(code)?.filter(({ item }) => unreadItems.has(item)) ?? [];
  const byRegion = Map.groupBy(stated, ({ regionCode }) => regionCode);
  for (const [code, rows] of byRegion) {
    // The batch reports the region itself.
    if (unread.has(code)) continue;
    const offered = rows.map(({ price }) => price);
    const reject = (price: OfferedRegionPrice, kind: RejectionCode, reason: string, amount?: string) =>
      rejected.push(rejectedPrice(code, price, kind, reason, amount));
    const [bad, problem] = regionPricesProblem(offered) ?? [];
    const first = offered[0] as OfferedRegionPrice;
    if (!known.has(code))
      reject(first, 'unknown_region', `its region ${code} is not in the provider's list of regions`);
    else if (bad) reject(bad, 'invalid', problem ?? '');
    else {
      const jump = isAccepted && jumpIn(code, offered, before.get(code) ?? [], { maxRatio, isAccepted });
      if (jump) {
        const { price, from, amount } = jump;
        const key = keyOf(code, price);
        reject(
          price,
          'price_jump',
          `price goes from ${from} to ${amount} ${price.currency}; readers keep the last ones. If it is right: fleetbook accept ${source.id} ${key} ${amount}`,
          amount,
        );
      } else prices.set(code, storedPrices(offered, keptOf(code), pricing));
    }
  }
  for (const code of before.keys())
    if (read.has(code) && !byRegion.has(code)) prices.set(code, storedPrices([], keptOf(code), pricing));
  return { prices, rejected };
}

/** Leaves out prices without an exchange rate. Their order is fixed: another order of an upstream's rows is no change. */
function storedPrices(
  offered: readonly OfferedRegionPrice[],
  kept: readonly StoredRegionPrice[],
  { currency, rates }: Pricing,
): StoredRegionPrice[] | null {
  const place = ({ item, name }: StoredRegionPrice) => `${REGION_ITEMS.indexOf(item)} ${name}`;
  const isOffered = (item: OfferedRegionPrice['item']) => offered.some((price) => price.item === item);
  const stored = [
    ...offered.flatMap((price) => storedRegionPrice(price, currency, rates) ?? []),
    // A payload that was read may have a part of an item, which then replaces all of it: an item has one default.
    ...kept.filter(({ item }) => !isOffered(item)),
  ];
  return stored.length === 0 ? null : stored.sort((a, b) => (place(a) < place(b) ? -1 : 1));
}

const keyOf = (code: string, { item, name }: Pick<OfferedRegionPrice, 'item' | 'name'>) =>
  `${code}/${item}/${name}`;

function rejectedPrice(
  code: string,
  price: OfferedRegionPrice,
  kind: RejectionCode,
  reason: string,
  amount: string | undefined,
): RejectedKey {
  const { item, name, currency, per = 'month' } = price;
  // No machine has this name. Traffic is counted by the month.
  const row = { key: keyOf(code, price), regionCode: code, name: `${item}/${name}`, code: kind, reason };
  return amount === undefined ? row : { ...row, price: { amount, per, currency } };
}

interface Jump {
  readonly price: OfferedRegionPrice;
  readonly from: string;
  readonly amount: string;
}

function jumpIn(
  code: string,
  offered: readonly OfferedRegionPrice[],
  before: readonly StoredRegionPrice[],
  { maxRatio, isAccepted }: { readonly maxRatio: number; readonly isAccepted: IsAccepted },
): Jump | undefined {
  for (const price of offered) {
    const old = before.find(({ item, name }) => item === price.item && name === price.name);
    const [from, amount] = [old && comparedAmount(old.source), comparedAmount(price)];
    if (!old || from === undefined || amount === undefined || old.source.currency !== price.currency)
      continue;
    const { per, currency } = price;
    const ratio = priceRatio({ amount: from, per: old.source.per }, { amount, per });
    if (ratio > maxRatio && !isAccepted(keyOf(code, price), { amount, currency }))
      return { price, from, amount };
  }
  return undefined;
}
