/** Statements about the prices of regions. */

import type { ConnectionDatabase } from '../../db/connection/connect.ts';
import { and, isNotNull, type SQLWrapper, sql } from '../../db/connection/drizzle.ts';
import { inCatalogue, increment, insertInto } from '../../db/connection/statements.ts';
import { regionPrices, regions } from '../../db/schema.ts';
import type { StoredRegionPrice } from '../../domain/prices/region-price.ts';

/** Returns the stored prices by region code, of regions that have some. */
export async function storedRegionPrices(
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
        and ${stated(sql`given.prices`)} is distinct from ${stated(sql`given.old`)}
    ), opened as (
      ${insertInto(regionPrices, { regionId: sql`given.id`, validFrom: now, prices: sql`given.prices` })}
      from given where given.prices is not null
        and ${stated(sql`given.prices`)} is distinct from ${stated(sql`given.old`)}
    )
    select id from given`);
  return changed.length > 0;
}

/** Returns the prices without converted amounts: a new exchange rate alone has no row of history. */
const stated = (prices: SQLWrapper) =>
  sql`(select jsonb_agg(p - 'tiers' order by n) from jsonb_array_elements(${prices}) with ordinality e (p, n))`;
