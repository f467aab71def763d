/** Sessions of operators. Each request reads the row, its token and its operator, so each of them can end it at once. */
import type { Database } from '../../../db/connection/connect.ts';
import { and, eq, gt, inArray, isNull, lte, sql } from '../../../db/connection/drizzle.ts';
import { operatorSessions, operators, operatorTokens } from '../../../db/schema.ts';
import { tokenState } from '../../../db/tokens.ts';
import { bytesOf } from './tokens.ts';

export async function beginSession(
  db: Database,
  { key, ...session }: { key: string; operatorId: number; tokenId: number | null },
  at: Date,
  expired: Date,
): Promise<void> {
  const now = at.toISOString();
  await db.delete(operatorSessions).where(lte(operatorSessions.beganAt, expired.toISOString()));
  await db.insert(operatorSessions).values({ ...session, digest: bytesOf(key), beganAt: now, usedAt: now });
}

export async function liveSessions(
  db: Database,
  keys: readonly string[],
  { beganAfter, usedAfter }: { readonly beganAfter: Date; readonly usedAfter: Date },
) {
  const { digest, operatorId, tokenId, beganAt, usedAt } = operatorSessions;
  const rows = await db
    .select({
      key: sql<string>`encode(${digest}, 'hex')`,
      operatorId: operators.id,
      tokenId,
      name: operators.name,
      role: operators.role,
      usedAt,
    })
    .from(operatorSessions)
    .innerJoin(operators, eq(operators.id, operatorId))
    .leftJoin(operatorTokens, eq(operatorTokens.id, tokenId))
    .where(
      and(
        inArray(digest, keys.map(bytesOf)),
        gt(beganAt, beganAfter.toISOString()),
        gt(usedAt, usedAfter.toISOString()),
        isNull(operators.disabledAt),
        eq(tokenState(operatorTokens), 'good'),
      ),
    );
  return rows.map((row) => ({ ...row, usedAt: new Date(row.usedAt) }));
}

export async function storeSessionUse(db: Database, key: string, at: Date): Promise<void> {
  await db
    .update(operatorSessions)
    .set({ usedAt: at.toISOString() })
    .where(eq(operatorSessions.digest, bytesOf(key)));
}

export async function endSession(db: Database, key: string): Promise<void> {
  await db.delete(operatorSessions).where(eq(operatorSessions.digest, bytesOf(key)));
}

export async function endSessionsOf(db: Database, operatorId: number): Promise<void> {
  await db.delete(operatorSessions).where(eq(operatorSessions.operatorId, operatorId));
}
