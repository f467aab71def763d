/** Statements of runs about plans of managed databases. */

import type { ConnectionDatabase } from '../../db/connection/connect.ts';
import { alias, and, eq, getTableColumns, sql } from '../../db/connection/drizzle.ts';
import { array, inCatalogue, insertInto, nameOf, notRetired } from '../../db/connection/statements.ts';
import { databasePlanPrices, databasePlans, regionFreshness, regions } from '../../db/schema.ts';
import { RAISE } from '../../db/versions.ts';
import type { OfferedPlan } from '../../domain/database-plan.ts';
import { decimal } from '../../domain/prices/price.ts';
import type { CatalogueSource } from './store.ts';

const p = databasePlans;

export interface StoredPlan extends OfferedPlan {
  readonly id: number;
  readonly regionCode: string;
  /** Per minute, in the published currency; null without an exchange rate. */
  readonly perMinute: string | null;
  readonly sourceId: string;
  /** Its source is staler than the reading one: this one has read its region since. */
  readonly isBehind: boolean;
  readonly isRetired: boolean;
}

const f = regionFreshness;
const mine = alias(regionFreshness, 'mine');

/** Returns all plans of a provider, with retired ones: a plan that returns keeps its id. @param source that reads them */
export async function storedPlans(
  db: ConnectionDatabase,
  { id, provider }: CatalogueSource,
): Promise<StoredPlan[]> {
  const rows = await db
    .select({
      ...getTableColumns(p),
      regionCode: regions.code,
      isBehind: sql<boolean>`coalesce(${f.verifiedAt} < ${mine.verifiedAt}, false)`,
    })
    .from(p)
    .innerJoin(regions, eq(regions.id, p.regionId))
    .leftJoin(f, and(eq(f.regionId, p.regionId), eq(f.sourceId, p.sourceId)))
    .leftJoin(mine, and(eq(mine.regionId, p.regionId), eq(mine.sourceId, id)))
    .where(inCatalogue(regions, provider.id));
  const number = (text: string | null) => (text === null ? null : Number(text));
  return rows.map(({ sourceAmount, sourcePer, sourceCurrency, price, retiredAt, ...plan }) => ({
    ...plan,
    ram: number(plan.ram),
    storage: number(plan.storage),
    price: { amount: plain(sourceAmount), per: sourcePer, currency: sourceCurrency },
    perMinute: price === null ? null : plain(price),
    isRetired: retiredAt !== null,
  }));
}

const plain = (amount: string) => decimal(amount) ?? amount;

/** A plan to write. */
export interface WrittenPlan extends OfferedPlan {
  /** Null: it is new. */
  readonly id: number | null;
  readonly regionCode: string;
  readonly perMinute: string | null;
  /** True if the source states another price, or states the plan again: the history has a row for it. */
  readonly isRepriced: boolean;
}

/** Stores new and changed plans, retires others, and raises the versions of their regions. Returns whether there are any. */
export async function writePlans(
  db: ConnectionDatabase,
  source: CatalogueSource,
  { changed, gone }: { readonly changed: readonly WrittenPlan[]; readonly gone: readonly number[] },
  now: string,
): Promise<boolean> {
  if (changed.length > 0) await storePlans(db, source, changed, now);
  if (gone.length > 0) await retirePlans(db, sql`${p.id} = any(${array(gone, 'integer')})`, now);
  return changed.length + gone.length > 0;
}

async function storePlans(
  db: ConnectionDatabase,
  { id: sourceId, provider }: CatalogueSource,
  plans: readonly WrittenPlan[],
  now: string,
): Promise<void> {
  const { validTo, planId } = databasePlanPrices;
  const given = JSON.stringify(plans.map(({ price, ...plan }) => ({ ...plan, ...price })));
  const priceOf = {
    price: sql`price`,
    sourceAmount: sql`source_amount`,
    sourcePer: sql`source_per`,
    sourceCurrency: sql`source_currency`,
  };
  const facts = { cpu: sql`cpu`, ram: sql`ram`, ramUnit: sql`ram_unit`, storage: sql`storage` };
  const written = { ...facts, ...priceOf, sourceId };
  await db.execute(sql`
    with given as (
      select w.id, ${regions.id} as region_id, w.engine, w.name, w.nodes, w.cpu, w.ram, w."ramUnit" as ram_unit, w.storage,
        w."perMinute" as price, w.amount as source_amount, w.per as source_per, w.currency as source_currency,
        w."isRepriced" as is_repriced
      from jsonb_to_recordset(${given}::text::jsonb) w (id integer, "regionCode" text, engine text, name text, nodes integer,
        cpu integer, ram numeric, "ramUnit" text, storage numeric, "perMinute" numeric, amount numeric, per text,
        currency text, "isRepriced" boolean)
      join ${regions} on ${inCatalogue(regions, provider.id)} and ${regions.code} = w."regionCode"
    ), added as (
      ${insertInto(p, { regionId: sql`region_id`, engine: sql`engine`, name: sql`name`, nodes: sql`nodes`, ...written })}
      from given where id is null order by region_id, engine, name, nodes
      returning id, price, source_amount, source_per, source_currency
    ), changed as (
      update ${p} set (cpu, ram, ram_unit, storage, price, source_amount, source_per, source_currency, source_id, retired_at) =
        (given.cpu, given.ram, given.ram_unit, given.storage, given.price, given.source_amount, given.source_per,
          given.source_currency, ${sourceId}, null)
      from given where ${p.id} = given.id
    ), closed as (
      update ${databasePlanPrices} set ${nameOf(validTo)} = ${now} from given
      where ${planId} = given.id and ${validTo} is null and given.is_repriced
    ), opened as (
      ${insertInto(databasePlanPrices, { planId: sql`id`, validFrom: now, ...priceOf })}
      from (
        select id, price, source_amount, source_per, source_currency from added
        union all
        select id, price, source_amount, source_per, source_currency from given where id is not null and is_repriced
      ) priced
    )
    ${RAISE.region} where ${regions.id} in (select region_id from given)`);
}

/** Retires all plans of a source. */
export async function retirePlansOf(db: ConnectionDatabase, sourceId: string, now: string): Promise<void> {
  await retirePlans(db, notRetired(p, sourceId), now);
}

async function retirePlans(
  db: ConnectionDatabase,
  condition: ReturnType<typeof sql>,
  now: string,
): Promise<void> {
  const { validTo, planId } = databasePlanPrices;
  await db.execute(sql`
    with retired as (
      update ${p} set ${nameOf(p.retiredAt)} = ${now} where ${condition} returning ${p.id}, ${p.regionId}
    ), closed as (
      update ${databasePlanPrices} set ${nameOf(validTo)} = ${now} from retired
      where ${planId} = retired.id and ${validTo} is null
    )
    ${RAISE.region} where ${regions.id} in (select region_id from retired)`);
}
