/** Changes of the lineage: where it began, and a new one. */
import type { Decider } from '../domain/operator.ts';
import { audit } from './audit.ts';
import type { ClientDatabase, Database } from './connection/connect.ts';
import { and, eq, isNull, sql } from './connection/drizzle.ts';
import { array, increment } from './connection/statements.ts';
import { type LineageState, readLineageState } from './lineage.ts';
import { lineage, organizations, scheduleSlots, sources, tokens } from './schema.ts';

/** Reads the state. Before the first publication it also records that the lineage began in this database. */
export async function ownLineageState(db: ClientDatabase): Promise<LineageState> {
  const state = await readLineageState(db.$client);
  const { began, identity } = state;
  if (began === null && identity !== null)
    await db.update(lineage).set({ databaseIdentity: identity }).where(isNull(lineage.databaseIdentity));
  return state;
}

/** More than the number of runs between a backup and its restoration. */
const FENCES_AHEAD = 1_000_000;

/**
 * Begins a new lineage. All document keys change, so readers find no document of the old lineage. Earlier runs may not store
 * anything, and the latest slot of every schedule is due again.
 * @param decider the operator who reported a restored database; undefined if a process detected it
 * @returns the id; undefined if `old` is not the current lineage any more, since another process began a new one
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

export interface NamedToken {
  readonly id: number;
  readonly organization: string;
}

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

export async function unknownTokens(db: Database, hashes: readonly string[]): Promise<string[]> {
  if (hashes.length === 0) return [];
  const rows = await db.execute<{ hash: string }>(sql`
    select h as hash from unnest(${array(hashes, 'text')}) h
    where not exists (select from ${tokens} where ${tokens.hash} = decode(h, 'hex'))`);
  return rows.map(({ hash }) => hash);
}
