/** Machines that a source reports and that readers do not see. */
import type { Sql } from '../client.ts';

export interface ExcludedMachine {
  readonly id: number;
  readonly regionCode: string;
  readonly name: string;
  /** See domain/exclusion.ts. */
  readonly reason: string;
  readonly cpu: number;
  readonly ram: number;
  readonly ramUnit: string;
  /** As the source states it; null where it states none. */
  readonly amount: string | null;
  readonly per: string | null;
  readonly currency: string | null;
}

export interface ExcludedMachines {
  readonly total: number;
  /** The most frequent first. */
  readonly reasons: readonly { readonly reason: string; readonly count: number }[];
  readonly rows: readonly ExcludedMachine[];
}

/** What is excluded of a source, by reason. @param limit of the rows; undefined for all of them */
export async function excludedMachines(
  sql: Sql,
  sourceId: string,
  limit: number | undefined,
): Promise<ExcludedMachines> {
  const reasons = await sql<{ reason: string; count: number }[]>`
    select excluded_reason as reason, count(*)::int as count from machines
    where source_id = ${sourceId} and retired_at is null and excluded_reason is not null
    group by 1 order by 2 desc, 1`;
  const rows = await sql<ExcludedMachine[]>`
    select m.id, r.code as "regionCode", m.name, m.excluded_reason as reason, m.cpu, m.ram::float as ram,
      m.ram_unit as "ramUnit", m.source_amount::text as amount, m.source_per as per, m.source_currency as currency
    from machines m join regions r on r.id = m.region_id
    where m.source_id = ${sourceId} and m.retired_at is null and m.excluded_reason is not null
    order by m.excluded_reason, r.code collate "C", m.name collate "C" limit ${limit ?? null}`;
  return { total: reasons.reduce((sum, { count }) => sum + count, 0), reasons, rows };
}

export interface SourceReasons {
  readonly id: string;
  /** Rows by `RejectionCode`, and machines by `ExclusionReason`. */
  readonly quarantined: Readonly<Record<string, number>>;
  readonly excluded: Readonly<Record<string, number>>;
}

/** Why none of a source's machines are published, or none of its rows stored: the most frequent reasons first. */
export interface HiddenReason {
  readonly id: string;
  readonly of: 'excluded' | 'quarantined';
  /** An exclusion reason, or what is wrong with the rows. */
  readonly reason: string;
  readonly count: number;
}

export async function hiddenReasons(sql: Sql, sourceIds: readonly string[]): Promise<HiddenReason[]> {
  return sql<HiddenReason[]>`
    select source_id as id, 'excluded' as of, excluded_reason as reason, count(*)::int as count from machines
    where source_id = any(${[...sourceIds]}) and retired_at is null and excluded_reason is not null
    group by source_id, excluded_reason
    union all
    select source_id, 'quarantined', reason, count(*)::int from quarantined_rows
    where source_id = any(${[...sourceIds]}) group by source_id, reason
    order by count desc, reason`;
}

/** By source, the currencies of the machines that are excluded because no exchange rate is known. */
export async function missingRates(sql: Sql): Promise<ReadonlyMap<string, readonly string[]>> {
  const rows = await sql<{ id: string; currencies: string[] }[]>`
    select source_id as id, array_agg(distinct source_currency order by source_currency) as currencies
    from machines where excluded_reason = 'no_exchange_rate' and retired_at is null and source_id is not null
    group by source_id`;
  return new Map(rows.map(({ id, currencies }) => [id, currencies]));
}

/** Of every source how many rows are quarantined and machines excluded, by kind of reason. */
export async function reasonCounts(sql: Sql): Promise<SourceReasons[]> {
  return sql<SourceReasons[]>`
    select s.id,
      (select coalesce(json_object_agg(code, rows), '{}') from (
        select code, count(*)::int as rows from quarantined_rows where source_id = s.id group by 1) q) as quarantined,
      (select coalesce(json_object_agg(excluded_reason, machines), '{}') from (
        select excluded_reason, count(*)::int as machines from machines
        where source_id = s.id and retired_at is null and excluded_reason is not null group by 1) e) as excluded
    from sources s order by s.id collate "C"`;
}

/** A region with many sold-out machines. */
export interface SoldOutRegion {
  readonly sourceId: string;
  readonly regionCode: string;
  readonly soldOut: number;
  /** Published and sold out together. */
  readonly machines: number;
  /** The first few names. */
  readonly examples: readonly string[];
}

/** Regions where at least this share of the machines, and this number of them, is sold out. */
export async function soldOutRegions(sql: Sql, share: number, atLeast: number): Promise<SoldOutRegion[]> {
  return sql<SoldOutRegion[]>`
    with sold_out as materialized (
      select source_id, region_id, count(*)::int as count,
        (array_agg(name order by price, name collate "C"))[1:3] as examples
      from machines where excluded_reason = 'sold_out' and retired_at is null
      group by 1, 2 having count(*) >= ${atLeast}::int
    )
    select s.source_id as "sourceId", r.code as "regionCode", s.count as "soldOut", s.count + p.count as machines, s.examples
    from sold_out s join regions r on r.id = s.region_id
    cross join lateral (
      select count(*)::int as count from machines m
      where m.region_id = s.region_id and m.source_id = s.source_id and m.excluded_reason is null and m.retired_at is null
    ) p
    where s.count >= ${share}::float8 * (s.count + p.count)
    order by s.source_id collate "C", r.code collate "C"`;
}
