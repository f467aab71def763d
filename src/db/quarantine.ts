import {
  quarantineKey,
  type RejectedKey,
  type RejectionCode,
  rejectionCode,
} from '../domain/rejected-rows.ts';
import type { ConnectionDatabase, Database } from './connection/client.ts';
import { alias, and, eq, isNotNull, isNull, sql } from './connection/drizzle.ts';
import { array, insertInto, nameOf, type RowOf, rfc3339 } from './connection/statements.ts';
import { machines, regions, sources, quarantinedRows as stored } from './schema.ts';

export interface QuarantinedRow extends RejectedKey {
  readonly since: string;
}

/** Returns the quarantined rows of a source by key. Their number is limited. */
export async function quarantinedRows(db: Database, sourceId: string): Promise<QuarantinedRow[]> {
  const { rowKey, code, reason, regionCode, name, organization, price } = stored;
  const key = sql<string>`case when ${organization} is null then ${rowKey} else substr(${rowKey}, length(${organization}) + 2) end`;
  const rows = await db
    .select({ key, code, reason, regionCode, name, organization, price, since: rfc3339(stored.firstSeenAt) })
    .from(stored)
    .where(eq(stored.sourceId, sourceId))
    .orderBy(sql`${rowKey} collate "C"`);
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
export async function hiddenReasons(db: Database, sourceIds: readonly string[]): Promise<HiddenReason[]> {
  const ids = array(sourceIds, 'text');
  return db.execute<RowOf<HiddenReason>>(sql`
    select ${machines.sourceId} as id, 'excluded' as of, ${machines.excludedReason} as reason, count(*)::int as count
    from ${machines}
    where ${machines.sourceId} = any(${ids}) and ${machines.retiredAt} is null and ${machines.excludedReason} is not null
    group by 1, 3
    union all
    select ${stored.sourceId}, 'quarantined', ${stored.reason}, count(*)::int from ${stored}
    where ${stored.sourceId} = any(${ids}) group by 1, 3
    order by count desc, reason`);
}

/** Returns, by source, the currencies without an exchange rate. Their machines are excluded. */
export async function missingRates(db: Database): Promise<ReadonlyMap<string, readonly string[]>> {
  const { sourceId, sourceCurrency, excludedReason, retiredAt } = machines;
  const rows = await db
    .select({
      id: sql<string>`${sourceId}`,
      currencies: sql<string[]>`array_agg(distinct ${sourceCurrency} order by ${sourceCurrency})`,
    })
    .from(machines)
    .where(and(eq(excludedReason, 'no_exchange_rate'), isNull(retiredAt), isNotNull(sourceId)))
    .groupBy(sourceId);
  return new Map(rows.map(({ id, currencies }) => [id, currencies]));
}

export async function reasonCounts(db: Database): Promise<SourceReasons[]> {
  return db.execute<RowOf<SourceReasons>>(sql`
    select ${sources.id},
      (select coalesce(json_object_agg(code, rows), '{}') from (
        select ${stored.code} as code, count(*)::int as rows from ${stored}
        where ${stored.sourceId} = ${sources.id} group by 1) q) as quarantined,
      (select coalesce(json_object_agg(reason, machines), '{}') from (
        select ${machines.excludedReason} as reason, count(*)::int as machines from ${machines}
        where ${machines.sourceId} = ${sources.id} and ${machines.retiredAt} is null and ${machines.excludedReason} is not null
        group by 1) e) as excluded
    from ${sources} order by ${sources.id} collate "C"`);
}

export interface SoldOutRegion {
  readonly sourceId: string;
  readonly regionCode: string;
  readonly soldOut: number;
  readonly machines: number;
  readonly examples: readonly string[];
}

/** Returns regions with at least this share and this number of sold-out machines. */
export async function soldOutRegions(db: Database, share: number, atLeast: number): Promise<SoldOutRegion[]> {
  const { sourceId, regionId, excludedReason, retiredAt, price, name } = machines;
  return db.execute<RowOf<SoldOutRegion>>(sql`
    with sold_out as materialized (
      select ${sourceId} as source, ${regionId} as region, count(*)::int as count,
        (array_agg(${name} order by ${price}, ${name} collate "C"))[1:3] as examples
      from ${machines} where ${excludedReason} = 'sold_out' and ${retiredAt} is null
      group by 1, 2 having count(*) >= ${atLeast}::int
    )
    select s.source as "sourceId", ${regions.code} as "regionCode", s.count as "soldOut", s.count + p.count as machines, s.examples
    from sold_out s join ${regions} on ${regions.id} = s.region
    cross join lateral (
      select count(*)::int as count from ${machines}
      where ${regionId} = s.region and ${sourceId} = s.source and ${excludedReason} is null and ${retiredAt} is null
    ) p
    where s.count >= ${share}::float8 * (s.count + p.count)
    order by s.source collate "C", ${regions.code} collate "C"`);
}
