/** Rows of a source that could not be used: the current state, not a log. */

import { quarantineKey, type RejectedKey, type RejectionCode, rejectionCode } from '../../domain/rejected.ts';
import type { SessionDatabase } from '../connect.ts';
import { alias, and, eq, isNotNull, sql } from '../drizzle.ts';
import { quarantinedRows as kept } from '../schema.ts';
import { array, insertInto, nameOf } from '../statements.ts';

const excluded = alias(kept, 'excluded');
const isSame = sql`((${kept.reason}, ${kept.code}, ${kept.price})
  is not distinct from (${excluded.reason}, ${excluded.code}, ${excluded.price}))`;

/**
 * Codes of rows that an approval does not cover. Such a row waits for a setting or for the acceptance of its price;
 * `unlisted` replaces rows that are not kept.
 */
const NEVER_APPROVED: readonly RejectionCode[] = [
  'incomplete',
  'unknown_organization',
  'deleted_organization',
  'unknown_machine',
  'price_jump',
  'unlisted',
];

/** The rows that an operator has approved under the same key and for the same reason. */
export async function approvedRows(
  db: SessionDatabase,
  sourceId: string,
  rejected: readonly RejectedKey[],
): Promise<ReadonlySet<RejectedKey>> {
  if (rejected.length === 0) return new Set();
  const approved = await db
    .select({ rowKey: kept.rowKey, code: kept.code, reason: kept.reason })
    .from(kept)
    .where(and(eq(kept.sourceId, sourceId), isNotNull(kept.approvedAt)));
  const known = new Map(approved.map((row) => [row.rowKey, row]));
  const isApproved = (row: RejectedKey) => {
    const found = known.get(quarantineKey(row));
    return found?.reason === row.reason && found.code === rejectionCode(row);
  };
  return new Set(rejected.filter(isApproved));
}

/**
 * Makes the quarantine of a source what the last good run said.
 * @param approvedAt when an operator approved these rows, RFC 3339; undefined where no operator did
 */
export async function writeQuarantine(
  db: SessionDatabase,
  sourceId: string,
  rejected: readonly RejectedKey[],
  approvedAt?: string,
): Promise<void> {
  // Of a row and an unread region under one key the region stays: it says more.
  const isRegion = ({ code }: RejectedKey) => code === 'unread_region';
  const inOrder = [...rejected.filter((row) => !isRegion(row)), ...rejected.filter(isRegion)];
  const rows = new Map(inOrder.map((row) => [quarantineKey(row), row]));
  const items = [...rows].map(([rowKey, row]) => {
    const code = rejectionCode(row);
    return { ...row, rowKey, code, approvedAt: NEVER_APPROVED.includes(code) ? undefined : approvedAt };
  });
  await db
    .delete(kept)
    .where(and(eq(kept.sourceId, sourceId), sql`${kept.rowKey} <> all(${array([...rows.keys()], 'text')})`));
  if (items.length === 0) return;
  await db.execute(sql`
    ${insertInto(kept, {
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
    on conflict (${nameOf(kept.sourceId)}, ${nameOf(kept.rowKey)}) do update
    set ${nameOf(kept.reason)} = ${excluded.reason}, ${nameOf(kept.code)} = ${excluded.code},
        ${nameOf(kept.regionCode)} = ${excluded.regionCode}, ${nameOf(kept.name)} = ${excluded.name},
        ${nameOf(kept.organization)} = ${excluded.organization}, ${nameOf(kept.price)} = ${excluded.price},
        ${nameOf(kept.approvedAt)} = coalesce(${excluded.approvedAt}, case when ${isSame} then ${kept.approvedAt} end)
    where not ${isSame} or ${kept.approvedAt} is null and ${excluded.approvedAt} is not null`);
}
