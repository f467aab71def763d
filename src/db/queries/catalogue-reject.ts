/** Staged rows that no catalogue can hold, twice, in such a place or at such a price: taken out, with the reason. */
import type { SessionSql } from '../connect.ts';
import { REJECTED_KEPT, type RejectedKey, type RejectionCode } from './rejected.ts';

/** What no row may go beyond. */
export interface Bounds {
  /** Codes of the batch's own regions. */
  readonly regions: readonly string[];
  /** Per minute, in the published currency. */
  readonly maxPrice: string;
}

export interface Unusable {
  /** At most a few more than `REJECTED_KEPT` of each kind. */
  readonly rejected: readonly RejectedKey[];
  /** Rows of machines that were there more than once, and how many types these are. */
  readonly duplicates: number;
  readonly duplicateTypes: number;
}

/** Takes every such row out of the staging table. */
export async function rejectUnusable(
  sql: SessionSql,
  providerId: number,
  { regions, maxPrice }: Bounds,
): Promise<Unusable> {
  // What is there twice goes first: of two prices the absurd one is not known to be the wrong one.
  const { repeated, duplicates, duplicateTypes } = await rejectRepeated(sql);
  const astray = await rejectAstray(sql, providerId, regions);
  const absurd = await rejectAbsurd(sql, maxPrice);
  return { rejected: [...repeated, ...astray, ...absurd], duplicates, duplicateTypes };
}

async function rejectRepeated(
  sql: SessionSql,
): Promise<{ repeated: RejectedKey[]; duplicates: number; duplicateTypes: number }> {
  const twice = await sql<{ regionCode: string; name: string; rows: number }[]>`
    with twice as (
      select region_code, name from staged_offers group by 1, 2 having count(*) > 1
    ), gone as (
      delete from staged_offers s using twice t where s.region_code = t.region_code and s.name = t.name
      returning s.region_code, s.name
    )
    select region_code as "regionCode", name, count(*)::int as rows from gone group by 1, 2
    order by region_code collate "C", name collate "C" limit ${REJECTED_KEPT + 1}`;
  const repeated = twice.map((row) =>
    machineRejected(
      row,
      'duplicate',
      `reported ${row.rows} times in one batch; which one holds cannot be told`,
    ),
  );
  const duplicates = twice.reduce((sum, row) => sum + row.rows, 0);
  return { repeated, duplicates, duplicateTypes: new Set(twice.map(({ name }) => name)).size };
}

/** Rows in a region that is neither the batch's nor the provider's. */
async function rejectAstray(
  sql: SessionSql,
  providerId: number,
  regions: readonly string[],
): Promise<RejectedKey[]> {
  const astray = await sql<{ regionCode: string; name: string }[]>`
    with gone as (
      delete from staged_offers s
      where not s.region_code = any(${regions}::text[]) and not exists (
        select from regions r where r.provider_id = ${providerId} and r.code = s.region_code and r.organization_id is null)
      returning region_code, name
    )
    select region_code as "regionCode", name from gone
    order by region_code collate "C", name collate "C" limit ${REJECTED_KEPT + 1}`;
  return astray.map((row) =>
    machineRejected(row, 'unknown_region', `its region ${row.regionCode} is none of the provider's regions`),
  );
}

async function rejectAbsurd(sql: SessionSql, maxPrice: string): Promise<RejectedKey[]> {
  const absurd = await sql<
    { regionCode: string; name: string; amount: string; per: string; currency: string }[]
  >`
    with gone as (delete from staged_offers where price > ${maxPrice} returning *)
    select region_code as "regionCode", name, source_amount as amount, source_per as per, source_currency as currency
    from gone order by region_code collate "C", name collate "C" limit ${REJECTED_KEPT + 1}`;
  return absurd.map((row) =>
    machineRejected(
      row,
      'price_limit',
      `price ${row.amount} ${row.currency} per ${row.per} is beyond every machine's; a unit may have changed`,
    ),
  );
}

function machineRejected(
  { regionCode, name }: { regionCode: string; name: string },
  code: RejectionCode,
  reason: string,
): RejectedKey {
  return { key: `${name}@${regionCode}`, regionCode, name, reason, code };
}
