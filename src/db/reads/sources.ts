/** Which sources are stored, and how fresh their regions are. */
import type { Disabling } from '../../domain/disabled.ts';
import type { Sql } from '../client.ts';
import type { RegionStatus } from './status.ts';

/** A source as it is stored, without what has to be counted. Times are RFC 3339. */
export interface StoredSource {
  readonly id: string;
  readonly kind: 'catalogue' | 'clusters' | 'rates';
  readonly adapter: string;
  /** When it was first known. */
  readonly registeredAt: string;
  /** When its last good run began to read; null for one that never succeeded. */
  readonly verifiedAt: string | null;
  /** When an operator took its data out of publication. */
  readonly retiredAt: string | null;
  /** That an operator has disabled it. */
  readonly disabled: Disabling | null;
}

/** Every source that was ever known, in the order of their ids. */
export async function storedSources(sql: Sql): Promise<StoredSource[]> {
  return sql<StoredSource[]>`
    select id, kind, adapter,
      to_char(registered_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as "registeredAt",
      to_char(verified_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as "verifiedAt",
      to_char(retired_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as "retiredAt",
      case when disabled_at is not null then json_build_object(
        'at', to_char(disabled_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
        'by', disabled_by, 'reason', disabled_reason) end as disabled
    from sources order by id collate "C"`;
}

export interface RegionsPage {
  readonly total: number;
  readonly rows: readonly RegionStatus[];
}

/**
 * The freshness of a source's regions: first those that were never read, then the oldest.
 * @param limit of the rows; undefined for all of them
 */
export async function sourceRegions(
  sql: Sql,
  sourceId: string,
  limit: number | undefined,
  offset = 0,
): Promise<RegionsPage> {
  const rows = await sql<(RegionStatus & { total: number })[]>`
    with fresh as (
      select r.code, f.verified_at from region_freshness f join regions r on r.id = f.region_id
      where f.source_id = ${sourceId}
    ), unread as (
      select region_code as code, first_seen_at, reason from quarantined_rows
      where source_id = ${sourceId} and code = 'unread_region'
    ), all_of_it as (
      select coalesce(f.code, u.code) as code, f.verified_at, u.first_seen_at, u.reason
      from fresh f full join unread u on u.code = f.code
    ), page as (
      select * from all_of_it order by verified_at nulls first, code collate "C"
      limit ${limit ?? null} offset ${offset}
    )
    select c.total, p.code,
      to_char(p.verified_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as "verifiedAt",
      to_char(p.first_seen_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as "unreadSince", p.reason
    from (select count(*)::int as total from all_of_it) c left join page p on true
    order by p.verified_at nulls first, p.code collate "C"`;
  return {
    total: rows[0]?.total ?? 0,
    rows: rows
      .filter(({ code }) => code !== null)
      .map(({ code, verifiedAt, unreadSince, reason }) => ({ code, verifiedAt, unreadSince, reason })),
  };
}
