/** Which history the database is in, and how a new one begins. */
import type { Decider } from '../domain/operator.ts';
import { audit } from './audit.ts';
import type { Sql } from './connection/client.ts';
import type { ClientDatabase, Database } from './connection/connect.ts';
import { and, eq, isNull, sql } from './connection/drizzle.ts';
import type { HistoryLook } from './connection/history.ts';
import { array, increment } from './connection/statements.ts';
import { lineage, organizations, scheduleSlots, sources, tokens } from './schema.ts';

/** The id of this database's history. */
export async function readLineage(sql: Sql): Promise<string> {
  const [row] = await sql<{ id: string }[]>`select id from lineage`;
  return present(row).id;
}

/** The lineage, and what shows whether the database is still in it: in one statement, of one instant. */
export async function readHistory(sql: Sql): Promise<HistoryLook> {
  const [row] = await sql<(Omit<HistoryLook, 'written'> & { written: string | null })[]>`
    select l.id as lineage, l.database_identity as began, h.identity, h.written
    from lineage l cross join database_history() h`;
  const { written, ...look } = present(row);
  return { ...look, written: written === null ? null : Number(written) };
}

function present<T>(row: T | undefined): T {
  if (!row) throw new Error('the database has no lineage; run `fleetbook migrate`');
  return row;
}

/** The history of the database, which is noted as the one in which its lineage began if none is noted yet. */
export async function ownHistory(db: ClientDatabase): Promise<HistoryLook> {
  const look = await readHistory(db.$client);
  const { began, identity } = look;
  if (began === null && identity !== null)
    await db.update(lineage).set({ databaseIdentity: identity }).where(isNull(lineage.databaseIdentity));
  return look;
}

/** Fences rise by more than runs begin between a backup and its restoration. */
const FENCES_AHEAD = 1_000_000;

/**
 * Begins a new lineage. Every document's key changes with it, so that nothing that the old one published is found. No
 * run from before may store anything, and every schedule's latest slot is due again.
 * @param decider the person who says that the database was restored; it has found that itself unless given
 * @returns its id; undefined when `old` is not the current lineage any more: then somebody else has begun a new one
 */
export async function beginLineage(
  db: Database,
  old: string,
  decider?: Decider,
): Promise<string | undefined> {
  return db.transaction(async (tx) => {
    const [row] = await tx
      .update(lineage)
      .set({
        id: sql`gen_random_uuid()`,
        createdAt: sql`now()`,
        databaseIdentity: sql`database_identity()`,
      })
      .where(eq(lineage.id, old))
      .returning({ id: lineage.id });
    if (!row) return undefined;
    await tx.update(sources).set({ fence: sql`${sources.fence} + ${FENCES_AHEAD}` });
    await tx.delete(scheduleSlots);
    if (decider) {
      const subject = { kind: 'lineage', id: row.id };
      await audit(tx, decider, { action: 'database.restored', subject, details: { before: old } });
    }
    return row.id;
  });
}

/** A token as an operator knows it. */
export interface NamedToken {
  readonly id: number;
  /** The organization's slug. */
  readonly organization: string;
}

/** Revokes those of these tokens (SHA-256, hexadecimal) that are not revoked. */
export async function revokeAgain(db: Database, hashes: readonly string[]): Promise<NamedToken[]> {
  if (hashes.length === 0) return [];
  return db
    .update(tokens)
    .set({ revokedAt: sql`now()`, version: increment(tokens.version) })
    .from(organizations)
    .where(
      and(
        sql`${tokens.hash} = any(array(select decode(h, 'hex') from unnest(${array(hashes, 'text')}) h))`,
        isNull(tokens.revokedAt),
        eq(organizations.id, tokens.organizationId),
      ),
    )
    .returning({ id: tokens.id, organization: organizations.slug });
}

/** Those of these tokens (SHA-256, hexadecimal) that the database does not know. */
export async function unknownTokens(db: Database, hashes: readonly string[]): Promise<string[]> {
  if (hashes.length === 0) return [];
  const rows = await db.execute<{ hash: string }>(sql`
    select h as hash from unnest(${array(hashes, 'text')}) h
    where not exists (select from ${tokens} where ${tokens.hash} = decode(h, 'hex'))`);
  return rows.map(({ hash }) => hash);
}
