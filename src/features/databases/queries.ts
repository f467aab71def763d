/** Statements about plans of databases. */
import type { Sql } from '../../db/connection/client.ts';
import { instant } from '../../db/connection/instant-text.ts';

export interface PlanPrice {
  readonly price: string | null;
  /** RFC 3339 with microseconds; `to` is null for the current one. */
  readonly from: string;
  readonly to: string | null;
}

/** Rows of a history that one answer may have. */
const ROWS_AT_MOST = 1000;

/** Returns the newest prices of a plan, the newest first. */
export async function planPrices(sql: Sql, planId: number): Promise<readonly PlanPrice[]> {
  return sql<PlanPrice[]>`
    select price::text, ${instant(sql, 'valid_from', 'us')} as "from",
      ${instant(sql, 'valid_to', 'us')} as "to"
    from database_plan_prices where plan_id = ${planId}
    order by valid_from desc limit ${ROWS_AT_MOST}`;
}

export interface FoundPlan {
  readonly id: number;
  readonly engine: string;
  readonly name: string;
  readonly nodes: number | null;
  readonly region: string;
  readonly provider: string;
  readonly cpu: number | null;
  readonly ram: number | null;
  readonly ramUnit: 'Binary' | 'Decimal' | null;
  readonly storage: number | null;
  /** Per minute; null without an exchange rate. */
  readonly price: number | null;
  readonly source: { readonly amount: string; readonly per: string; readonly currency: string };
}

export interface PlanSearch {
  readonly text: string | undefined;
  readonly providerId: number | undefined;
  readonly region: string | undefined;
  readonly engine: string | undefined;
  readonly limit: number;
}

/** Returns the plans that sources state now, the cheapest first, and their number. */
export async function searchPlans(
  sql: Sql,
  { text, providerId, region, engine, limit }: PlanSearch,
): Promise<{ readonly rows: readonly FoundPlan[]; readonly total: number }> {
  const rows = await sql<(FoundPlan & { total: number })[]>`
    select d.id, d.engine, d.name, d.nodes, r.code as region, p.name as provider, d.cpu, d.ram::float8 as ram,
      d.ram_unit as "ramUnit", d.storage::float8 as storage, d.price::float8 as price,
      json_build_object('amount', trim_scale(d.source_amount)::text, 'per', d.source_per, 'currency', d.source_currency) as source,
      (count(*) over ())::int as total
    from database_plans d join regions r on r.id = d.region_id join providers p on p.id = r.provider_id
    where d.retired_at is null
      and ${text === undefined ? sql`true` : sql`strpos(lower(d.name), ${text.toLowerCase()}) > 0`}
      and ${providerId === undefined ? sql`true` : sql`p.id = ${providerId}`}
      and ${region === undefined ? sql`true` : sql`r.code = ${region}`}
      and ${engine === undefined ? sql`true` : sql`d.engine = ${engine.toLowerCase()}`}
    order by d.price, d.id limit ${limit}`;
  return { rows: rows.map(({ total: _, ...row }) => row), total: rows[0]?.total ?? 0 };
}
