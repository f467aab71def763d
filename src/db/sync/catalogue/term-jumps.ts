/** Jumps of terms: prices of terms, and monthly caps, that a batch changes by more than a factor. See price-jumps.ts. */
import { REJECTED_KEPT, type RejectedKey } from '../../../domain/rejected-rows.ts';
import type { ConnectionDatabase } from '../../connection/connect.ts';
import { pgTable, type SQL, type SQLWrapper, sql } from '../../connection/drizzle.ts';
import { notRetired, selectAs } from '../../connection/statements.ts';
import { amount } from '../../schema/shared-columns.ts';
import { acceptedPrices, machines } from '../../schema.ts';
import { catalogueDiff } from './compare.ts';
import { minutes } from './price-jumps.ts';

const d = catalogueDiff;

const termJumps = pgTable('term_jumps', (c) => ({
  machineId: c.integer('machine_id').notNull(),
  regionCode: c.text('region_code').notNull(),
  name: c.text('name').notNull(),
  /** Or `monthly_cap`. */
  term: c.text('term').notNull(),
  amount: amount('amount').notNull(),
  per: c.text('per', { enum: ['hour', 'month'] }).notNull(),
  currency: c.text('currency').notNull(),
  oldAmount: amount('old_amount'),
  oldCurrency: c.text('old_currency').notNull(),
  ratio: c.numeric('ratio').notNull(),
}));
const t = termJumps;

export interface TermJumps {
  /** Machines with a jump, and the number of their types. */
  readonly rows: number;
  readonly types: number;
  /** The largest factor. */
  readonly ratio: number;
}

export const NO_TERM_JUMPS: TermJumps = { rows: 0, types: 0, ratio: 1 };

/** Finds the jumps of published machines, except accepted ones. It compares own amounts, or prices if the currency changed. */
export async function findTermJumps(
  db: ConnectionDatabase,
  sourceId: string,
  maxRatio: number,
): Promise<TermJumps> {
  const a = acceptedPrices;
  await db.execute(sql`
    create temporary table ${t} on commit drop as
    ${selectAs(t, {
      machineId: d.machineId,
      regionCode: d.regionCode,
      name: d.name,
      term: sql`s.term`,
      amount: sql`trim_scale(s.amount)`,
      per: sql`s.per`,
      currency: sql`s.currency`,
      oldAmount: sql`trim_scale(s.old_amount)`,
      oldCurrency: sql`s.old_currency`,
      ratio: sql`f.ratio`,
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
    ) s cross join lateral (
      select case when s.currency = s.old_currency then greatest(s.amount / s.old_amount, s.old_amount / s.amount)
        else greatest(s.price / s.old_price, s.old_price / s.price) end) f (ratio)
    where ${d.termsRestated} and (${d.wasPublished} or ${d.wasSoldOut}) and f.ratio > ${maxRatio}
      and not exists (
        select from ${a} where ${a.sourceId} = ${sourceId} and ${a.regionCode} = ${d.regionCode}
          and ${a.name} = ${d.name} || '/' || s.term
          and (${a.amount}, ${a.per}, ${a.currency}) = (s.amount, s.per, s.currency))`);
  const [found] = await db
    .select({
      rows: sql<number>`count(distinct ${t.machineId})::int`,
      types: sql<number>`count(distinct ${t.name})::int`,
      ratio: sql<number>`coalesce(max(${t.ratio}), 1)::float`,
    })
    .from(t);
  return found ?? NO_TERM_JUMPS;
}

/** Returns the effective price per hour in the source's own currency. Twelve places are enough to accept it by its text. */
function hourly(stored: SQLWrapper): SQL {
  const price = (field: string) => sql`(${stored} #>> ${sql.raw(`'{source,price,${field}}'`)})`;
  return sql`round(${price('amount')}::numeric * 60 / ${minutes(price('per'))}
    + coalesce((${stored} #>> '{source,upfront}')::numeric, 0) / (8760 * case when key like '%3y' then 3 else 1 end), 12)`;
}

/** Restores the last terms of machines with a jump in the diff. Returns the jumps as rejected rows, at most `REJECTED_KEPT`. */
export async function setTermJumpsAside(db: ConnectionDatabase, sourceId: string): Promise<RejectedKey[]> {
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
    .where(sql`${d.machineId} in (select ${t.machineId} from ${t})`);
  const rows = await db
    .select()
    .from(t)
    .orderBy(sql`${t.regionCode} collate "C"`, sql`${t.name} collate "C"`, t.term)
    .limit(REJECTED_KEPT);
  return rows.map(({ regionCode, name, term, amount: stated, per, currency, ...old }) => {
    const key = `${name}@${regionCode}/${term}`;
    const factor = Number(old.ratio).toPrecision(3);
    const reason = `price goes from ${old.oldAmount} ${old.oldCurrency} to ${stated} ${currency} per ${per}, a factor of ${factor}; readers keep the last terms. If it is right: fleetbook accept ${sourceId} ${key} ${stated}`;
    const price = { amount: stated, per, currency };
    return { key, regionCode, name: `${name}/${term}`, code: 'price_jump' as const, reason, price };
  });
}

/** Counts the machines of a source with terms. */
export function countWithTerms(db: ConnectionDatabase, sourceId: string): Promise<number> {
  return db.$count(machines, sql`${notRetired(machines, sourceId)} and ${machines.terms} is not null`);
}
