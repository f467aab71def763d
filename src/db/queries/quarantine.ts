/** Rows of a source that could not be used: the current state, not a log. */
import type { SessionSql, Sql } from '../connect.ts';
import { quarantineKey, type RejectedKey, rejectionCode } from './rejected.ts';

/** Makes the quarantine of a source what the last good run said. */
export async function writeQuarantine(
  sql: SessionSql,
  sourceId: string,
  rejected: readonly RejectedKey[],
): Promise<void> {
  // Of a row and an unread region under one key the region stays: it says more.
  const isRegion = ({ code }: RejectedKey) => code === 'unread_region';
  const inOrder = [...rejected.filter((row) => !isRegion(row)), ...rejected.filter(isRegion)];
  const rows = new Map(inOrder.map((row) => [quarantineKey(row), row]));
  const items = [...rows].map(([rowKey, row]) => ({ ...row, rowKey, code: rejectionCode(row) }));
  await sql`
    delete from quarantined_rows where source_id = ${sourceId} and not row_key = any(${[...rows.keys()]}::text[])`;
  if (items.length === 0) return;
  await sql`
    insert into quarantined_rows (source_id, row_key, reason, code, region_code, name, organization, price)
    select ${sourceId}, w."rowKey", w.reason, w.code, w."regionCode", w.name, w.organization, w.price
    from jsonb_to_recordset(${JSON.stringify(items)}::text::jsonb)
      w ("rowKey" text, reason text, code text, "regionCode" text, name text, organization text, price jsonb)
    on conflict (source_id, row_key) do update
    set reason = excluded.reason, code = excluded.code, region_code = excluded.region_code, name = excluded.name,
        organization = excluded.organization, price = excluded.price
    where (quarantined_rows.reason, quarantined_rows.code, quarantined_rows.price)
      is distinct from (excluded.reason, excluded.code, excluded.price)`;
}

export interface QuarantinedRow extends RejectedKey {
  /** RFC 3339: since when it cannot be used. */
  readonly since: string;
}

/** All that is quarantined of a source, a bounded number, in the order of their keys. */
export async function quarantinedRows(sql: Sql, sourceId: string): Promise<QuarantinedRow[]> {
  const rows = await sql<(QuarantinedRow & Record<string, unknown>)[]>`
    select case when organization is null then row_key else substr(row_key, length(organization) + 2) end as key,
      code, reason, region_code as "regionCode", name, organization, price,
      to_char(first_seen_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as since
    from quarantined_rows where source_id = ${sourceId} order by row_key collate "C"`;
  return rows.map(
    (row) =>
      Object.fromEntries(
        Object.entries(row).filter(([, value]) => value !== null),
      ) as unknown as QuarantinedRow,
  );
}
