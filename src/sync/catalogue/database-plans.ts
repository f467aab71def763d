/** Plans of managed databases in a batch: checked, converted, compared with the stored ones, guarded, and stored. */
import type { ConnectionDatabase } from '../../db/connection/connect.ts';
import { alias, and, eq, getTableColumns, sql } from '../../db/connection/drizzle.ts';
import { array, inCatalogue, insertInto, nameOf, notRetired } from '../../db/connection/statements.ts';
import { databasePlanPrices, databasePlans, regionFreshness, regions } from '../../db/schema.ts';
import { RAISE } from '../../db/versions.ts';
import { type OfferedPlan, planName, planProblem, type StatedPlan } from '../../domain/database-plan.ts';
import { decimal, isSamePrice, pricePerMinute } from '../../domain/prices/price.ts';
import type { RejectedKey, RejectionCode } from '../../domain/rejected-rows.ts';
import type { Pricing } from '../currency.ts';
import { type Guard, type GuardLimits, shareGuard } from '../guards.ts';
import type { ChangedPrice } from './check-prices.ts';
import type { RegionsBatch } from './region-prices.ts';
import { highestPrice } from './stage.ts';
import type { CatalogueSource } from './store.ts';

const p = databasePlans;
const f = regionFreshness;
const mine = alias(regionFreshness, 'mine');

export interface PlansBatch extends RegionsBatch {
  readonly stated: readonly StatedPlan[];
  /** The plans could not be read: the stored ones stay. */
  readonly isUnread: boolean;
  readonly limits: GuardLimits;
}

export interface ComparedPlans {
  /** New plans, and stored ones with another value. */
  readonly changed: readonly WrittenPlan[];
  /** Prices of stored plans that change. */
  readonly repriced: readonly ChangedPrice[];
  /** Ids of plans that their source does not state any more. */
  readonly gone: readonly number[];
  /** Stated plans without a problem. */
  readonly usable: number;
  readonly rejected: readonly RejectedKey[];
  readonly guards: readonly Guard[];
}

/** Returns how many plans are new, and how many change or return. */
export function countsOf({ changed }: ComparedPlans): { readonly added: number; readonly changed: number } {
  const added = changed.filter(({ id }) => id === null).length;
  return { added, changed: changed.length - added };
}

/** A plan to write. */
export interface WrittenPlan extends OfferedPlan {
  /** Null: it is new. */
  readonly id: number | null;
  readonly regionCode: string;
  readonly perMinute: string | null;
  /** True if the source states another price, or states the plan again: the history has a row for it. */
  readonly isRepriced: boolean;
}

const NONE: ComparedPlans = { changed: [], repriced: [], gone: [], usable: 0, rejected: [], guards: [] };
const keyOf = (regionCode: string, plan: OfferedPlan) => `${regionCode}/${planName(plan)}`;

/** Returns the plans to write. A bad plan keeps its last values. */
export async function comparePlans(
  db: ConnectionDatabase,
  source: CatalogueSource,
  batch: PlansBatch,
): Promise<ComparedPlans> {
  const { stated, isUnread, unread, read, known, limits } = batch;
  const stored = await storedPlans(db, source);
  if (stated.length === 0 && stored.length === 0) return NONE;
  const before = new Map(stored.map((plan) => [keyOf(plan.regionCode, plan), plan]));
  const rejected: RejectedKey[] = [];
  const seen = new Set<string>();
  const changed: WrittenPlan[] = [];
  const repriced: ChangedPrice[] = [];
  let usable = 0;
  for (const row of stated) {
    const key = keyOf(row.regionCode, row.plan);
    // The batch reports the region itself.
    if (unread.has(row.regionCode)) continue;
    const [code, problem] = problemOf(row, seen.has(key), batch) ?? [];
    seen.add(key);
    if (code) {
      rejected.push(rejectedPlan(row, code, problem ?? ''));
      continue;
    }
    usable += 1;
    const written = changeOf(row, before.get(key), source, batch);
    if (!written) continue;
    changed.push(written);
    repriced.push(...priceChange(before.get(key), written));
  }
  const own = stored.filter(({ sourceId, isRetired }) => sourceId === source.id && !isRetired);
  const isKept = (code: string) => isUnread || unread.has(code) || (known.has(code) && !read.has(code));
  const gone = own.filter((plan) => !isKept(plan.regionCode) && !seen.has(keyOf(plan.regionCode, plan)));
  // Machines have their own guard, so that many plans do not hide lost machines.
  const removed = shareGuard(
    'removed',
    {
      count: gone.length,
      of: own.length,
      limit: limits.removedShare,
      what: 'known database plans are not reported any more',
    },
    limits,
  );
  return { changed, repriced, gone: gone.map(({ id }) => id), usable, rejected, guards: [removed] };
}

/** Returns the plans without those that keep their last values. @param keeping `region/name` */
export function withoutKept(plans: ComparedPlans, keeping: ReadonlySet<string>): ComparedPlans {
  if (keeping.size === 0) return plans;
  return { ...plans, changed: plans.changed.filter((plan) => !keeping.has(keyOf(plan.regionCode, plan))) };
}

function problemOf(
  { regionCode, plan }: StatedPlan,
  isRepeated: boolean,
  { known, pricing, limits }: PlansBatch,
): readonly [RejectionCode, string] | undefined {
  if (!known.has(regionCode))
    return ['unknown_region', `its region ${regionCode} is not in the provider's list of regions`];
  if (isRepeated) return ['duplicate', 'is listed twice'];
  const problem = planProblem(plan, perMinute(plan, pricing), highestPrice(limits.maxHourlyPrice, pricing));
  return problem === undefined ? undefined : ['invalid', problem];
}

const perMinute = ({ price }: OfferedPlan, { currency, rates }: Pricing) =>
  decimal(price.amount) === undefined ? undefined : pricePerMinute(price, currency, rates);

/**
 * Returns the plan to store; undefined if nothing of it differs. A plan without an exchange rate keeps its last price, like a machine. An unchanged plan stays that of another source, unless this one has read its region since.
 */
function changeOf(
  { regionCode, plan }: StatedPlan,
  before: StoredPlan | undefined,
  source: CatalogueSource,
  { pricing }: PlansBatch,
): WrittenPlan | undefined {
  const converted = perMinute(plan, pricing) ?? null;
  const isPriced = before !== undefined && !before.isRetired && before.perMinute !== null;
  const stated = { ...plan.price, amount: decimal(plan.price.amount) ?? plan.price.amount };
  const price = converted === null && isPriced ? before.price : stated;
  const isRepriced = !before || before.isRetired || !isSamePrice(before.price, price);
  const after = {
    ...plan,
    price,
    regionCode,
    perMinute: converted === null && isPriced ? before.perMinute : converted,
  };
  const isSame =
    !isRepriced &&
    (before.sourceId === source.id || !before.isBehind) &&
    (['cpu', 'ram', 'ramUnit', 'storage', 'perMinute'] as const).every(
      (field) => before[field] === after[field],
    );
  return isSame ? undefined : { ...after, id: before?.id ?? null, isRepriced };
}

function priceChange(before: StoredPlan | undefined, { regionCode, ...after }: WrittenPlan): ChangedPrice[] {
  if (!before || before.isRetired || !after.isRepriced) return [];
  return [
    {
      kind: 'plan',
      regionCode,
      name: planName(after),
      type: `${after.engine} ${after.name}`,
      unit: null,
      before: { ...before.price, price: before.perMinute },
      after: { ...after.price, price: after.perMinute },
    },
  ];
}

function rejectedPlan({ regionCode, plan }: StatedPlan, code: RejectionCode, reason: string): RejectedKey {
  return {
    key: keyOf(regionCode, plan),
    regionCode,
    name: planName(plan),
    code,
    reason,
    of: 'database_plan',
  };
}

interface StoredPlan extends OfferedPlan {
  readonly id: number;
  readonly regionCode: string;
  /** Per minute, in the published currency; null without an exchange rate. */
  readonly perMinute: string | null;
  readonly sourceId: string;
  /** Its source is staler than the reading one: this one has read its region since. */
  readonly isBehind: boolean;
  readonly isRetired: boolean;
}

/** Returns all plans of a provider, with retired ones: a plan that returns keeps its id. @param source that reads them */
async function storedPlans(db: ConnectionDatabase, { id, provider }: CatalogueSource): Promise<StoredPlan[]> {
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
