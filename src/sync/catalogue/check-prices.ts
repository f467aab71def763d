/**
 * The check of stated prices: those of machines, of their terms, of regions and of plans of databases. A price that a batch changes by
 * more than a factor is a jump, unless an operator accepted it. Few jumps of a kind are quarantined, and many hold the batch.
 */
import type { ConnectionDatabase } from '../../db/connection/connect.ts';
import {
  and,
  getTableColumns,
  inArray,
  pgTable,
  type SQL,
  type SQLWrapper,
  sql,
} from '../../db/connection/drizzle.ts';
import { insertInto, selectAs } from '../../db/connection/statements.ts';
import { PERIOD_CASES, TERM_CASES } from '../../db/prices/terms.ts';
import { amount, PERIODS } from '../../db/schema/shared-columns.ts';
import { acceptedPrices } from '../../db/schema.ts';
import type { SourcePrice } from '../../domain/prices/price.ts';
import { REJECTED_KEPT, type RejectedKey } from '../../domain/rejected-rows.ts';
import type { Guard, GuardLimits } from '../guards.ts';
import { catalogueDiff, catalogueMissing } from './match.ts';

const PRICED = {
  machine: 'a machine',
  term: 'a term',
  region: 'a region',
  plan: 'a database plan',
};
/** What has prices that a batch states. */
type PriceKind = keyof typeof PRICED;
export const PRICE_KINDS = Object.keys(PRICED) as [PriceKind, ...PriceKind[]];

/** A price of a region or a plan that differs from the stored one. The check reads those of machines from the comparison. */
export interface ChangedPrice {
  readonly kind: Extract<PriceKind, 'region' | 'plan'>;
  readonly regionCode: string;
  /** As in the quarantine and among accepted prices, e.g. `block_storage/ssd`. No machine has this name. */
  readonly name: string;
  /** One mistake in a type affects all its regions. */
  readonly type: string;
  /** What an amount pays for, besides the time: `GB`. Null for a plan. */
  readonly unit: string | null;
  readonly before: ComparedPrice;
  readonly after: ComparedPrice;
}

export interface ComparedPrice extends Omit<SourcePrice, 'per'> {
  /** Null for traffic, which is paid by quantity. */
  readonly per: SourcePrice['per'] | null;
  /** Converted, per minute; null without an exchange rate. */
  readonly price: string | null;
}

export interface CheckedPrices {
  /** One for each kind with jumps. */
  readonly guards: readonly Guard[];
  /** The quarantined prices, at most `REJECTED_KEPT` + 1. */
  readonly rejected: readonly RejectedKey[];
  /** Rows of machines among them. */
  readonly setAside: number;
  /** True if anything in the comparison has changed. */
  readonly hasChanged: boolean;
  /** Regions that keep their last prices, and plans by `region/name`. */
  readonly keeping: Readonly<Record<ChangedPrice['kind'], ReadonlySet<string>>>;
}

const d = catalogueDiff;
const a = acceptedPrices;

export const priceJumps = pgTable('price_jumps', (c) => ({
  kind: c.text('kind', { enum: PRICE_KINDS }).notNull(),
  /** Null for regions and plans. */
  machineId: c.integer('machine_id'),
  regionCode: c.text('region_code').notNull(),
  name: c.text('name').notNull(),
  /** Of machines and terms: the machine's name. */
  type: c.text('type').notNull(),
  unit: c.text('unit'),
  amount: amount('amount').notNull(),
  per: c.text('per', { enum: PERIODS }),
  currency: c.text('currency').notNull(),
  price: c.numeric('price'),
  oldAmount: amount('old_amount').notNull(),
  oldPer: c.text('old_per', { enum: PERIODS }),
  oldCurrency: c.text('old_currency').notNull(),
  oldPrice: c.numeric('old_price'),
  /** False for a sold-out machine. It keeps its last price, and its price counts when it is available again. */
  counts: c.boolean('counts').notNull(),
  ratio: c.numeric('ratio').notNull(),
}));
const j = priceJumps;

interface Check {
  readonly limits: GuardLimits;
  /** An operator's approval accepts all jumps of the batch. */
  readonly approved: boolean;
  /** Rows that a batch states of each kind. */
  readonly stated: Readonly<Record<PriceKind, number>>;
  readonly changed: readonly ChangedPrice[];
}

/** Fills `price_jumps`, and removes jumps from the comparison that must not be stored. */
export async function checkPrices(
  db: ConnectionDatabase,
  sourceId: string,
  { limits, approved, stated, changed }: Check,
): Promise<CheckedPrices> {
  await findJumps(db, sourceId, limits.priceRatio, changed);
  const found = await db
    .select({
      kind: j.kind,
      counts: j.counts,
      rows: sql<number>`count(distinct coalesce(${j.machineId}::text, ${j.regionCode} || '/' || ${j.name}))::int`,
      types: sql<number>`count(distinct ${j.type})::int`,
      ratio: sql<number>`max(${j.ratio})::float`,
    })
    .from(j)
    .groupBy(j.kind, j.counts);
  const jumps = PRICE_KINDS.flatMap((kind) => {
    const own = found.find((each) => each.kind === kind && each.counts);
    return own ? [{ kind, guard: jumpGuard(kind, { ...own, stated: stated[kind] }, limits) }] : [];
  });
  const guards = jumps.map(({ guard }) => guard);
  const few = approved ? [] : jumps.filter(({ guard }) => !guard.isBroken).map(({ kind }) => kind);
  const keeping = { region: new Set<string>(), plan: new Set<string>() };
  const hasSoldOut = !approved && found.some(({ counts }) => !counts);
  if (hasSoldOut) {
    await keepPrices(db);
    await keepTerms(db, sql`not ${j.counts}`);
  }
  if (few.length === 0) return { guards, rejected: [], setAside: 0, hasChanged: hasSoldOut, keeping };
  const rejected = await quarantined(db, sourceId, few);
  const setAside = few.includes('machine') ? await setMachinesAside(db) : 0;
  if (few.includes('term')) await keepTerms(db, sql`${j.counts}`);
  const { kind, regionCode, name } = j;
  const others = few.filter((each) => each === 'region' || each === 'plan');
  if (others.length > 0)
    for (const row of await db.select({ kind, regionCode, name }).from(j).where(inArray(kind, others))) {
      if (row.kind === 'region') keeping.region.add(row.regionCode);
      else keeping.plan.add(`${row.regionCode}/${row.name}`);
    }
  return { guards, rejected, setAside, hasChanged: true, keeping };
}

/** Prices of a kind that would change by more than `priceRatio`. */
export interface PriceJumps {
  /** Rows with a jump, and the number of their types. One mistake in a type affects all its regions. */
  readonly rows: number;
  readonly types: number;
  /** The largest factor. */
  readonly ratio: number;
  /** All rows that the batch states. */
  readonly stated: number;
}

/** Returns the guard of many jumps. Few wrong prices are quarantined. */
export function jumpGuard(
  kind: PriceKind,
  { rows, types, ratio, stated }: PriceJumps,
  { smallCount, rejectedShare, priceRatio: limit }: GuardLimits,
): Guard {
  const isBroken = types > smallCount && rows / stated > rejectedShare;
  const detail = () =>
    `${rows} of ${stated} rows would change the price of ${PRICED[kind]} by more than a factor of ${limit}, one by ${ratio.toPrecision(3)}`;
  return { guard: 'price_ratio', found: ratio, limit, isBroken, detail };
}

type JumpColumns = Readonly<Record<keyof typeof j._.columns, SQLWrapper>>;
const COLUMNS = Object.entries(getTableColumns(j));
const OF_STATED = Object.fromEntries(
  COLUMNS.map(([key, { name }]) => [key, sql.raw(`s.${name}`)]),
) as unknown as JumpColumns;

/** Selects columns in one order, for a union. */
const select = (values: JumpColumns): SQL =>
  selectAs(
    j,
    Object.fromEntries(COLUMNS.map(([key]) => [key, values[key as keyof JumpColumns]])) as JumpColumns,
  );

/**
 * Creates `price_jumps` from the stated prices of all kinds, without accepted ones. It compares amounts, or converted prices if the
 * currency changed. A machine's price counts if readers saw the machine before and see it afterwards.
 */
async function findJumps(
  db: ConnectionDatabase,
  sourceId: string,
  limit: number,
  changed: readonly ChangedPrice[],
): Promise<void> {
  const ofMachine = {
    machineId: d.machineId,
    regionCode: d.regionCode,
    type: d.name,
    unit: sql`null::text`,
    counts: d.isPublished,
    ratio: sql`null::numeric`,
  };
  const wasSeen = sql`(${d.wasPublished} or ${d.wasSoldOut}) and (${d.isPublished} or ${d.isSoldOut})`;
  const given = changed.map(({ before, after, ...each }) => ({ ...each, ...after, before }));
  const before = (field: string) => sql`(w.before ->> ${sql.raw(`'${field}'`)})`;
  const minutes = (per: string) => sql.raw(`(case coalesce(s.${per}, 'month') ${PERIOD_CASES} end)`);
  const [from, to] = [
    sql`case when s.currency = s.old_currency then s.old_amount * ${minutes('per')} else s.old_price end`,
    sql`case when s.currency = s.old_currency then s.amount * ${minutes('old_per')} else s.price end`,
  ];
  await db.execute(sql`
    create temporary table ${j} on commit drop as
    with stated as (
      ${select({
        ...ofMachine,
        kind: sql`'machine'`,
        name: d.name,
        amount: d.sourceAmount,
        per: d.sourcePer,
        currency: d.sourceCurrency,
        price: d.price,
        oldAmount: d.oldAmount,
        oldPer: d.oldPer,
        oldCurrency: d.oldCurrency,
        oldPrice: d.oldPrice,
      })}
      from ${d} where ${d.repriced} and ${wasSeen}
      union all
      ${select({
        ...ofMachine,
        kind: sql`'term'`,
        name: sql`${d.name} || '/' || t.term`,
        amount: sql`t.amount`,
        per: sql`t.per`,
        currency: sql`t.currency`,
        price: sql`t.price`,
        oldAmount: sql`t.old_amount`,
        oldPer: sql`t.per`,
        oldCurrency: sql`t.old_currency`,
        oldPrice: sql`t.old_price`,
      })}
      from ${d} cross join lateral (
        select key as term, 'hour' as per, ${hourly(sql`value`)} as amount, ${hourly(sql`old`)} as old_amount,
          value #>> '{source,price,currency}' as currency, old #>> '{source,price,currency}' as old_currency,
          (value ->> 'price')::numeric as price, (old ->> 'price')::numeric as old_price
        from jsonb_each(${d.terms} -> 'terms') cross join lateral (select ${d.oldTerms} #> array['terms', key]) o (old)
        union all
        select 'monthly_cap', 'month', (value #>> '{source,amount}')::numeric, (old #>> '{source,amount}')::numeric,
          value #>> '{source,currency}', old #>> '{source,currency}',
          (value ->> 'price')::numeric, (old ->> 'price')::numeric
        from (select ${d.terms} -> 'monthly_cap', ${d.oldTerms} -> 'monthly_cap') c (value, old)
      ) t where ${d.termsRestated} and ${wasSeen}
      union all
      ${select({
        kind: sql`w.kind`,
        machineId: sql`null::integer`,
        regionCode: sql`w."regionCode"`,
        name: sql`w.name`,
        type: sql`w.type`,
        unit: sql`w.unit`,
        amount: sql`w.amount`,
        per: sql`w.per`,
        currency: sql`w.currency`,
        price: sql`w.price`,
        oldAmount: sql`${before('amount')}::numeric`,
        oldPer: before('per'),
        oldCurrency: before('currency'),
        oldPrice: sql`${before('price')}::numeric`,
        counts: sql`true`,
        ratio: sql`null::numeric`,
      })}
      from jsonb_to_recordset(${JSON.stringify(given)}::text::jsonb) w (kind text, "regionCode" text, name text, type text,
        unit text, amount numeric, per text, currency text, price numeric, before jsonb)
    )
    ${select({
      ...OF_STATED,
      amount: sql`trim_scale(s.amount)`,
      oldAmount: sql`trim_scale(s.old_amount)`,
      ratio: sql`f.ratio`,
    })}
    from stated s
    cross join lateral (select ${from}, ${to}) c (before, after)
    cross join lateral (select greatest(c.after / nullif(c.before, 0), c.before / nullif(c.after, 0))) f (ratio)
    where c.before > 0 and c.after > 0 and f.ratio > ${limit} and not exists (
      select from ${a} where ${a.sourceId} = ${sourceId} and ${a.regionCode} = s.region_code and ${a.name} = s.name
        and (${a.amount}, ${a.per}, ${a.currency}) = (s.amount, coalesce(s.per, 'month'), s.currency))`);
}

/** Returns the effective price per hour in the source's own currency. Twelve places are enough to accept it by its text. */
function hourly(stored: SQLWrapper): SQL {
  const price = (field: string) => sql`(${stored} #>> ${sql.raw(`'{source,price,${field}}'`)})`;
  return sql`round(${price('amount')}::numeric * 60 / (case ${price('per')} ${sql.raw(PERIOD_CASES)} end)
    + coalesce((${stored} #>> '{source,upfront}')::numeric * 60 / (case key ${sql.raw(TERM_CASES)} end), 0), 12)`;
}

/** Returns the counted jumps of these kinds as rejected rows, at most `REJECTED_KEPT` + 1. */
async function quarantined(
  db: ConnectionDatabase,
  sourceId: string,
  kinds: readonly PriceKind[],
): Promise<RejectedKey[]> {
  const rows = await db
    .select()
    .from(j)
    .where(and(j.counts, inArray(j.kind, [...kinds])))
    .orderBy(j.kind, sql`${j.regionCode} collate "C"`, sql`${j.name} collate "C"`)
    .limit(REJECTED_KEPT + 1);
  return rows.map(({ kind, regionCode, name, type, amount: stated, per, currency, ...row }) => {
    const isOfMachine = kind === 'machine' || kind === 'term';
    const key = isOfMachine ? `${type}@${regionCode}${name.slice(type.length)}` : `${regionCode}/${name}`;
    const before = inWords({ ...row, amount: row.oldAmount, per: row.oldPer, currency: row.oldCurrency });
    const after = inWords({ ...row, amount: stated, per, currency });
    const factor = Number(row.ratio).toPrecision(3);
    const reason = `price goes from ${before} to ${after}, a factor of ${factor}; readers see the last price. If it is right: fleetbook accept ${sourceId} ${key} ${stated}`;
    // Traffic is counted by the month.
    const price = { amount: stated, per: per ?? 'month', currency };
    const of = kind === 'plan' ? ({ of: 'database_plan' } as const) : {};
    return { key, regionCode, name, code: 'price_jump' as const, reason, price, ...of };
  });
}

export function inWords(price: {
  readonly amount: string;
  readonly per: string | null;
  readonly currency: string;
  readonly unit: string | null;
}): string {
  const units = [price.unit, price.per].flatMap((unit) => (unit === null ? [] : [` per ${unit}`]));
  return `${price.amount} ${price.currency}${units.join('')}`;
}

/** Removes jumping machines from the comparison. They count as seen and keep their last good state. Returns their number. */
async function setMachinesAside(db: ConnectionDatabase): Promise<number> {
  const { machineId, regionId, name, regionCode, wasPublished, wasSoldOut } = d;
  const moved = { machineId, regionId, name, regionCode, wasPublished, wasSoldOut, tolerated: true };
  const jumping = sql`${d.machineId} in (select ${j.machineId} from ${j} where ${j.kind} = 'machine' and ${j.counts})`;
  await db.execute(sql`${insertInto(catalogueMissing, moved)} from ${d} where ${jumping}`);
  const { count } = await db.delete(d).where(jumping);
  return count;
}

/** Restores the last prices of sold-out machines with a jump. */
async function keepPrices(db: ConnectionDatabase): Promise<void> {
  await db
    .update(d)
    .set({
      sourceAmount: sql`${d.oldAmount}`,
      sourcePer: sql`${d.oldPer}`,
      sourceCurrency: sql`${d.oldCurrency}`,
      price: sql`${d.oldPrice}`,
      repriced: sql`false`,
      differs: sql`(${d.reshaped} or ${d.factsChanged} or ${d.termsChanged} or ${d.oldExcludedReason} is distinct from ${d.excludedReason})`,
    })
    .where(
      sql`${d.machineId} in (select ${j.machineId} from ${j} where ${j.kind} = 'machine' and not ${j.counts})`,
    );
}

/** Restores all last terms of machines with such a jump: one row of history has them together. */
async function keepTerms(db: ConnectionDatabase, jumps: SQL): Promise<void> {
  await db
    .update(d)
    .set({
      terms: sql`${d.oldTerms}`,
      termsChanged: sql`false`,
      termsRestated: sql`false`,
      termsLost: sql`false`,
      differs: sql`(${d.repriced} or ${d.reshaped} or ${d.factsChanged}
        or (${d.oldPrice}, ${d.oldExcludedReason}) is distinct from (${d.price}, ${d.excludedReason}))`,
    })
    .where(sql`${d.machineId} in (select ${j.machineId} from ${j} where ${j.kind} = 'term' and ${jumps})`);
}
