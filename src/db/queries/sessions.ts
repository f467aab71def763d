/** Sessions of signed-in operators. PostgreSQL is the truth: a session ends in every process when its row or account says so. */
import type { Role } from '../../domain/operator.ts';
import type { Database } from '../connect.ts';
import { and, eq, gt, inArray, isNull, lte, or, sql } from '../drizzle.ts';
import { operatorSessions, operators } from '../schema.ts';

export interface NewSession {
  /** SHA-256 of the id in the cookie. */
  readonly digest: Buffer;
  /** Null for OPS_TOKEN. */
  readonly operatorId: number | null;
  /** The account's epoch, or the mark of OPS_TOKEN. */
  readonly epoch: string;
}

/** What a live session satisfies. */
export interface LiveTerms {
  /** Instants after which it began, and was last used. */
  readonly beganAfter: Date;
  readonly seenAfter: Date;
  /** The mark of the present OPS_TOKEN; undefined without one. */
  readonly tokenMark: string | undefined;
}

export interface LiveSession {
  readonly digest: Buffer;
  readonly seenAt: Date;
  /** Undefined for OPS_TOKEN. */
  readonly operator: { readonly name: string; readonly role: Role; readonly byOidc: boolean } | undefined;
}

/** Stores a session. Deletes rows that began before `expired`. */
export async function beginSession(
  db: Database,
  session: NewSession,
  at: Date,
  expired: Date,
): Promise<void> {
  const now = at.toISOString();
  await db.delete(operatorSessions).where(lte(operatorSessions.beganAt, expired.toISOString()));
  await db.insert(operatorSessions).values({ ...session, beganAt: now, seenAt: now });
}

/** The live ones of these sessions. A disabled account, and another epoch than the session's, end it. */
export async function liveSessions(
  db: Database,
  digests: readonly Buffer[],
  { beganAfter, seenAfter, tokenMark }: LiveTerms,
): Promise<LiveSession[]> {
  const { digest, operatorId, epoch, beganAt, seenAt } = operatorSessions;
  const ofToken = and(isNull(operatorId), eq(epoch, tokenMark ?? ''));
  const ofAccount = and(isNull(operators.disabledAt), sql`${operators.sessionEpoch}::text = ${epoch}`);
  const rows = await db
    .select({ digest, seenAt, name: operators.name, role: operators.role, hash: operators.passwordHash })
    .from(operatorSessions)
    .leftJoin(operators, eq(operators.id, operatorId))
    .where(
      and(
        inArray(digest, [...digests]),
        gt(beganAt, beganAfter.toISOString()),
        gt(seenAt, seenAfter.toISOString()),
        or(ofToken, ofAccount),
      ),
    );
  return rows.map(({ name, role, hash, ...row }) => ({
    digest: row.digest,
    seenAt: new Date(row.seenAt),
    operator: name === null || role === null ? undefined : { name, role, byOidc: hash === null },
  }));
}

/** Notes a use, so that the session is not idle. */
export async function noteSessionUse(db: Database, digest: Buffer, at: Date): Promise<void> {
  await db
    .update(operatorSessions)
    .set({ seenAt: at.toISOString() })
    .where(eq(operatorSessions.digest, digest));
}

export async function endSession(db: Database, digest: Buffer): Promise<void> {
  await db.delete(operatorSessions).where(eq(operatorSessions.digest, digest));
}

/** Ends all sessions that OPS_TOKEN opened. */
export async function endTokenSessions(db: Database): Promise<void> {
  await db.delete(operatorSessions).where(isNull(operatorSessions.operatorId));
}
