/** The price of a cluster's machine when the cluster was created. See docs/decisions/0103. */
import type { Database } from '../connection/client.ts';
import { type SQL, sql } from '../connection/drizzle.ts';
import { IS_LISTED } from '../published-rows.ts';

/**
 * The time whose price counts. Providers that leave existing machines alone since a time have changed the prices of all before it, so an
 * older machine has the last price before that time.
 */
const asOf = (now: string): SQL => sql`case
  when c.machine_since < p.keeps_prices_since and p.keeps_prices_since <= ${now}::timestamptz then p.keeps_prices_since
  else c.machine_since end`;

const outdated = (condition: SQL, now: string): SQL => sql`
  clusters c join regions r on r.id = c.region_id join providers p on p.id = r.provider_id
  cross join lateral (select ${asOf(now)} as as_of) wanted
  where ${condition} and c.retired_at is null and (c.creation_as_of is distinct from wanted.as_of
    or c.creation_reason = 'not_listed' and exists (
      select from machines m where m.id = c.machine_id and ${sql.raw(IS_LISTED)}))`;

/** Selects the organizations of the clusters of a source whose creation prices `storeCreationPrices` changes. */
export const organizationsWithoutCreationPrices = (sourceId: string, now: string): SQL =>
  sql`select c.organization_id from ${outdated(sql`c.source_id = ${sourceId}`, now)}`;

/**
 * Stores the prices on demand that were in force when clusters were created, from the history of prices. It changes only clusters that
 * have none of that time, or whose machine is listed since then.
 * @param condition about clusters `c`
 * @param now RFC 3339
 * @returns the organizations of changed clusters
 */
export async function storeCreationPrices(db: Database, condition: SQL, now: string): Promise<number[]> {
  // The new price begins at the time of the rule, so the price before it counts.
  const inForce = (table: string) => sql`
    left join lateral (
      select h.* from ${sql.raw(table)} h where h.machine_id = o.machine_id
        and (h.valid_from < o.as_of or h.valid_from = o.as_of and not o.is_last)
      order by h.valid_from desc limit 1
    )`;
  const hasEnded = (row: string) =>
    sql.raw(`coalesce(${row}.valid_to < o.as_of or ${row}.valid_to = o.as_of and not o.is_last, false)`);
  const changed = await db.execute<{ organizationId: number }>(sql`
    with o as materialized (
      select c.id, c.machine_id, wanted.as_of, c.machine_since < wanted.as_of as is_last
      from ${outdated(condition, now)}
    ), found as (
      select o.id, o.as_of, h.valid_from is not null as is_known, ${sql.raw(IS_LISTED)} as is_listed,
        case when h.price > 0 and not ${hasEnded('h')} then h.price end as price,
        case when not ${hasEnded('t')} then (t.terms -> 'monthly_cap' ->> 'price')::numeric end as cap
      from o join machines m on m.id = o.machine_id ${inForce('machine_prices')} h on true ${inForce('machine_terms')} t on true
    )
    update clusters c set creation_as_of = found.as_of, creation_price = found.price,
      creation_cap = case when found.price is not null then found.cap end,
      creation_reason = case when found.price is not null then null when not found.is_listed then 'not_listed'
        when not found.is_known then 'before_history' else 'no_price' end
    from found where c.id = found.id
    returning c.organization_id as "organizationId"`);
  return [...new Set(changed.map(({ organizationId }) => organizationId))];
}
