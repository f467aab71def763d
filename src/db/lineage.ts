/** The lineage of the database, and where it began. */
import type { Decider } from '../domain/operator.ts';
import { audit } from './audit.ts';
import type { Sql } from './connection/client.ts';
import type { ClientDatabase, Database } from './connection/connect.ts';
import { and, eq, isNull, sql } from './connection/drizzle.ts';
import { array, increment } from './connection/statements.ts';
import { lineage, organizations, scheduleSlots, sources, tokens } from './schema.ts';

// Each reader reads the lineage every second. PostgreSQL plans a prepared statement of postgres.js once a connection, and a
// statement of Drizzle each time.

export async function readLineage(sql: Sql): Promise<string> {
  const [row] = await sql<{ id: string }[]>`select id from lineage`;
  return present(row).id;
}

/**
 * Names this database among all that share a Redis. A new lineage and a failover keep the name. A copy on another server, and a
 * second database on the same one, have another.
 */
export async function databaseName(db: Database): Promise<string> {
  const [row] = await db.execute<{ name: string }>(sql`
    select left(md5(concat_ws(' ', l.deployment, split_part(i.identity, ' ', 1), split_part(i.identity, ' ', 3))), 12) as name
    from lineage l cross join database_identity() i (identity)`);
  return present(row).name;
}

export interface LineageState {
  readonly lineage: string;
  /** `database_identity()` when the lineage began; null until the first publication. */
  readonly began: string | null;
  /** `database_identity()` now; null on a standby. */
  readonly identity: string | null;
}

export async function readLineageState(sql: Sql): Promise<LineageState> {
  const [row] = await sql<LineageState[]>`
    select id as lineage, database_identity as began, case when not pg_is_in_recovery() then database_identity() end as identity
    from lineage`;
  return present(row);
}

/** Returns true if the lineage began in another database: a restored dump, a copy, a recovery, or a promoted standby has it. */
export function beganElsewhere({ began, identity }: LineageState): boolean {
  if (began === null || identity === null) return false;
  const parts = identity.split(' ');
  // `-` is a part that a server does not reveal.
  return !began.split(' ').every((part, i) => part === parts[i] || part === '-' || parts[i] === '-');
}

function present<T>(row: T | undefined): T {
  if (!row) throw new Error('the database has no lineage; run `fleetbook migrate`');
  return row;
}

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
