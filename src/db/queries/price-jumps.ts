/** Prices that readers see and that a batch would change by more than a factor: few of them are set aside. */
import type { SourcePrice } from '../../domain/price.ts';
import type { SessionSql } from '../connect.ts';
import { REJECTED_KEPT, type RejectedKey } from './rejected.ts';

export interface SetAside {
  readonly count: number;
  /** At most one more than `REJECTED_KEPT`. */
  readonly rejected: readonly RejectedKey[];
}

/**
 * Gives each row of `catalogue_diff` the factor `ratio` by which the published price changes, 1 where it does not, and
 * marks those beyond `limit` as `jumps`, but for prices that an operator accepted. Factors are those of the source's own
 * amounts, so that an exchange rate is no part of them, unless the currency is another one now.
 */
export async function markJumps(sql: SessionSql, sourceId: string, limit: number): Promise<void> {
  await sql`
    alter table catalogue_diff add column ratio numeric not null default 1, add column jumps boolean not null default false`;
  await sql`
    update catalogue_diff d
    set ratio = f.ratio, jumps = f.ratio > ${limit}
    from (
      select region_code, name, greatest(after / before, before / after) as ratio
      from catalogue_diff cross join lateral (
        select case when source_currency = old_currency then source_amount * ${minutes(sql, 'old_per')} else price end
            as after,
          case when source_currency = old_currency then old_amount * ${minutes(sql, 'source_per')} else old_price end
            as before) compared
      where repriced and was_published and is_published and before > 0 and after > 0
    ) f
    where f.region_code = d.region_code and f.name = d.name and not exists (
      select from accepted_prices a
      where a.source_id = ${sourceId} and a.region_code = d.region_code and a.name = d.name
        and (a.amount, a.per, a.currency) = (d.source_amount, d.source_per, d.source_currency))`;
}

/** As in domain/price.ts; multiplied crosswise, since a quotient would be rounded. */
function minutes(sql: SessionSql, column: 'source_per' | 'old_per') {
  return sql`case ${sql(column)} when 'minute' then 1 when 'hour' then 60 else 730 * 60 end`;
}

/** Takes the rows that jump out of the diff. Their machines count as seen and keep their last good values. */
export async function setJumpsAside(sql: SessionSql, sourceId: string): Promise<SetAside> {
  const rows = await sql<
    (SourcePrice & {
      regionCode: string;
      name: string;
      ratio: number;
      oldAmount: string;
      oldPer: string;
      oldCurrency: string;
      all: number;
    })[]
  >`
    with gone as (
      delete from catalogue_diff where jumps returning *
    ), found as (
      insert into catalogue_missing
      select machine_id, region_id, name, region_code, was_published, true from gone
    )
    select region_code as "regionCode", name, ratio::float as ratio, source_amount::text as amount, source_per as per,
      source_currency as currency, old_amount::text as "oldAmount", old_per as "oldPer", old_currency as "oldCurrency",
      (count(*) over ())::int as all
    from gone order by region_code collate "C", name collate "C" limit ${REJECTED_KEPT + 1}`;
  const rejected = rows.map(({ regionCode, name, ratio, amount, per, currency, ...old }) => {
    const key = `${name}@${regionCode}`;
    const before = `${old.oldAmount} ${old.oldCurrency} per ${old.oldPer}`;
    const reason = `price goes from ${before} to ${amount} ${currency} per ${per}, a factor of ${ratio.toPrecision(3)}; readers keep the last one. If it is right: fleetbook accept ${sourceId} ${key} ${amount}`;
    return { key, regionCode, name, code: 'price_jump' as const, reason, price: { amount, per, currency } };
  });
  return { count: rows[0]?.all ?? 0, rejected };
}
