import type { RejectedKey } from '../../domain/rejected.ts';
import type { Sql } from '../client.ts';

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
