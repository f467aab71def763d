/** Rows of a source that could not be used: the current state, not a log. */

import { quarantineKey, type RejectedKey, rejectionCode } from '../../domain/rejected.ts';
import type { SessionDatabase } from '../connect.ts';
import { alias, and, eq, sql } from '../drizzle.ts';
import { quarantinedRows as kept } from '../schema.ts';
import { array, insertInto, nameOf } from '../statements.ts';

const excluded = alias(kept, 'excluded');

/** Makes the quarantine of a source what the last good run said. */
export async function writeQuarantine(
  db: SessionDatabase,
  sourceId: string,
  rejected: readonly RejectedKey[],
): Promise<void> {
  // Of a row and an unread region under one key the region stays: it says more.
  const isRegion = ({ code }: RejectedKey) => code === 'unread_region';
  const inOrder = [...rejected.filter((row) => !isRegion(row)), ...rejected.filter(isRegion)];
  const rows = new Map(inOrder.map((row) => [quarantineKey(row), row]));
  const items = [...rows].map(([rowKey, row]) => ({ ...row, rowKey, code: rejectionCode(row) }));
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
    })}
    from jsonb_to_recordset(${JSON.stringify(items)}::text::jsonb)
      w ("rowKey" text, reason text, code text, "regionCode" text, name text, organization text, price jsonb)
    on conflict (${nameOf(kept.sourceId)}, ${nameOf(kept.rowKey)}) do update
    set ${nameOf(kept.reason)} = ${excluded.reason}, ${nameOf(kept.code)} = ${excluded.code},
        ${nameOf(kept.regionCode)} = ${excluded.regionCode}, ${nameOf(kept.name)} = ${excluded.name},
        ${nameOf(kept.organization)} = ${excluded.organization}, ${nameOf(kept.price)} = ${excluded.price}
    where (${kept.reason}, ${kept.code}, ${kept.price})
      is distinct from (${excluded.reason}, ${excluded.code}, ${excluded.price})`);
}
