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
