import {
  quarantineKey,
  type RejectedKey,
  type RejectionCode,
  rejectionCode,
} from '../domain/rejected-rows.ts';
import type { Sql } from './connection/client.ts';
import type { ConnectionDatabase } from './connection/connect.ts';
import { alias, and, eq, isNotNull, sql } from './connection/drizzle.ts';
import { instant } from './connection/instant-text.ts';
import { array, insertInto, nameOf } from './connection/statements.ts';
import { quarantinedRows as stored } from './schema.ts';

export interface QuarantinedRow extends RejectedKey {
  readonly since: string;
}

/** Returns the quarantined rows of a source by key. Their number is limited. */
export async function quarantinedRows(sql: Sql, sourceId: string): Promise<QuarantinedRow[]> {
  const rows = await sql<(QuarantinedRow & Record<string, unknown>)[]>`
    select case when organization is null then row_key else substr(row_key, length(organization) + 2) end as key,
      code, reason, region_code as "regionCode", name, organization, price,
      ${instant(sql, 'first_seen_at')} as since
    from quarantined_rows where source_id = ${sourceId} order by row_key collate "C"`;
  return rows.map(
    (row) =>
      Object.fromEntries(
        Object.entries(row).filter(([, value]) => value !== null),
      ) as unknown as QuarantinedRow,
  );
}

const excluded = alias(stored, 'excluded');
const isSame = sql`((${stored.reason}, ${stored.code}, ${stored.price})
  is not distinct from (${excluded.reason}, ${excluded.code}, ${excluded.price}))`;

/** Codes that an approval does not cover: such a row needs a setting or an accepted price. `unlisted` counts rows beyond the limit. */
const NEVER_APPROVED: readonly RejectionCode[] = [
  'incomplete',
  'unknown_organization',
  'deleted_organization',
  'unknown_machine',
  'price_jump',
  'unlisted',
];

/** Returns the rejected rows that an operator approved before, with the same key and reason. */
export async function approvedRows(
  db: ConnectionDatabase,
  sourceId: string,
  rejected: readonly RejectedKey[],
): Promise<ReadonlySet<RejectedKey>> {
  if (rejected.length === 0) return new Set();
  const approved = await db
    .select({ rowKey: stored.rowKey, code: stored.code, reason: stored.reason })
    .from(stored)
    .where(and(eq(stored.sourceId, sourceId), isNotNull(stored.approvedAt)));
  const known = new Map(approved.map((row) => [row.rowKey, row]));
  const isApproved = (row: RejectedKey) => {
    const found = known.get(quarantineKey(row));
    return found?.reason === row.reason && found.code === rejectionCode(row);
  };
  return new Set(rejected.filter(isApproved));
}

/** Replaces the quarantine of a source. @param approvedAt when an operator approved the rows, RFC 3339 */
export async function writeQuarantine(
  db: ConnectionDatabase,
  sourceId: string,
  rejected: readonly RejectedKey[],
  approvedAt?: string,
): Promise<void> {
  // If a row and an unread region have the same key, the region stays.
  const isRegion = ({ code }: RejectedKey) => code === 'unread_region';
  const inOrder = [...rejected.filter((row) => !isRegion(row)), ...rejected.filter(isRegion)];
  const rows = new Map(inOrder.map((row) => [quarantineKey(row), row]));
  const items = [...rows].map(([rowKey, row]) => {
    const code = rejectionCode(row);
    return { ...row, rowKey, code, approvedAt: NEVER_APPROVED.includes(code) ? undefined : approvedAt };
  });
  await db
    .delete(stored)
    .where(
      and(eq(stored.sourceId, sourceId), sql`${stored.rowKey} <> all(${array([...rows.keys()], 'text')})`),
    );
  if (items.length === 0) return;
  await db.execute(sql`
    ${insertInto(stored, {
      sourceId,
      rowKey: sql`w."rowKey"`,
      reason: sql`w.reason`,
      code: sql`w.code`,
      regionCode: sql`w."regionCode"`,
      name: sql`w.name`,
      organization: sql`w.organization`,
      price: sql`w.price`,
      approvedAt: sql`w."approvedAt"`,
    })}
    from jsonb_to_recordset(${JSON.stringify(items)}::text::jsonb)
      w ("rowKey" text, reason text, code text, "regionCode" text, name text, organization text, price jsonb,
        "approvedAt" timestamptz)
    on conflict (${nameOf(stored.sourceId)}, ${nameOf(stored.rowKey)}) do update
    set ${nameOf(stored.reason)} = ${excluded.reason}, ${nameOf(stored.code)} = ${excluded.code},
        ${nameOf(stored.regionCode)} = ${excluded.regionCode}, ${nameOf(stored.name)} = ${excluded.name},
        ${nameOf(stored.organization)} = ${excluded.organization}, ${nameOf(stored.price)} = ${excluded.price},
        ${nameOf(stored.approvedAt)} = coalesce(${excluded.approvedAt}, case when ${isSame} then ${stored.approvedAt} end)
    where not ${isSame} or ${stored.approvedAt} is null and ${excluded.approvedAt} is not null`);
}

export interface SourceReasons {
  readonly id: string;
  readonly quarantined: Readonly<Record<string, number>>;
  readonly excluded: Readonly<Record<string, number>>;
}

export interface HiddenReason {
  readonly id: string;
  readonly of: 'excluded' | 'quarantined';
  readonly reason: string;
  readonly count: number;
}

/** Returns why machines and rows of sources are not published, the most frequent reasons first. */
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

/** Returns, by source, the currencies without an exchange rate. Their machines are excluded. */
export async function missingRates(sql: Sql): Promise<ReadonlyMap<string, readonly string[]>> {
  const rows = await sql<{ id: string; currencies: string[] }[]>`
    select source_id as id, array_agg(distinct source_currency order by source_currency) as currencies
    from machines where excluded_reason = 'no_exchange_rate' and retired_at is null and source_id is not null
    group by source_id`;
  return new Map(rows.map(({ id, currencies }) => [id, currencies]));
}

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

export interface SoldOutRegion {
  readonly sourceId: string;
  readonly regionCode: string;
  readonly soldOut: number;
  readonly machines: number;
  readonly examples: readonly string[];
}

/** Returns regions with at least this share and this number of sold-out machines. */
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
