/** Prices of regions in a batch: checked, converted, compared with the stored ones, and stored. */
import type { ConnectionDatabase } from '../../db/connection/connect.ts';
import { and, isNotNull, type SQLWrapper, sql } from '../../db/connection/drizzle.ts';
import { inCatalogue, increment, insertInto } from '../../db/connection/statements.ts';
import { regionPrices, regions } from '../../db/schema.ts';
import { isSamePrice } from '../../domain/prices/price.ts';
import {
  type OfferedRegionPrice,
  REGION_ITEMS,
  regionPricesProblem,
  type StoredRegionPrice,
  storedRegionPrice,
} from '../../domain/prices/region-price.ts';
import type { RejectedKey, RejectionCode } from '../../domain/rejected-rows.ts';
import type { UnreadItem } from '../../sources/source.ts';
import type { Pricing } from '../currency.ts';
import type { ChangedPrice, ComparedPrice } from './check-prices.ts';
import type { StatedRegionPrice } from './stage.ts';
import type { CatalogueSource } from './store.ts';

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

/** Returns the stored prices by region code, of regions that have some. */
async function storedRegionPrices(
  db: ConnectionDatabase,
  providerId: number,
): Promise<Map<string, readonly StoredRegionPrice[]>> {
  const rows = await db
    .select({ code: regions.code, prices: regions.prices })
    .from(regions)
    .where(and(inCatalogue(regions, providerId), isNotNull(regions.prices)));
  return new Map(rows.map(({ code, prices }) => [code, prices ?? []]));
}

/** Stores the differing prices, raises the versions of their regions, and writes the history. Returns whether any differs. */
export async function writeRegionPrices(
  db: ConnectionDatabase,
  providerId: number,
  prices: ReadonlyMap<string, readonly StoredRegionPrice[] | null>,
  now: string,
): Promise<boolean> {
  if (prices.size === 0) return false;
  const given = JSON.stringify([...prices].map(([code, stored]) => ({ code, stored })));
  const changed = await db.execute<{ id: number }>(sql`
    with given as (
      select ${regions.id}, nullif(w.stored, 'null') as prices, ${regions.prices} as old
      from jsonb_to_recordset(${given}::text::jsonb) w (code text, stored jsonb)
      join ${regions} on ${inCatalogue(regions, providerId)} and ${regions.code} = w.code
      where ${regions.prices} is distinct from nullif(w.stored, 'null')
    ), raised as (
      update ${regions} set prices = given.prices, version = ${increment(regions.version)}
      from given where ${regions.id} = given.id
    ), closed as (
      update ${regionPrices} set valid_to = ${now} from given
      where ${regionPrices.regionId} = given.id and ${regionPrices.validTo} is null
        and ${withoutConverted(sql`given.prices`)} is distinct from ${withoutConverted(sql`given.old`)}
    ), opened as (
      ${insertInto(regionPrices, { regionId: sql`given.id`, validFrom: now, prices: sql`given.prices` })}
      from given where given.prices is not null
        and ${withoutConverted(sql`given.prices`)} is distinct from ${withoutConverted(sql`given.old`)}
    )
    select id from given`);
  return changed.length > 0;
}

/** Returns the prices without converted amounts: a new exchange rate alone has no row of history. */
const withoutConverted = (prices: SQLWrapper) =>
  sql`(select jsonb_agg(p - 'tiers' order by n) from jsonb_array_elements(${prices}) with ordinality e (p, n))`;
