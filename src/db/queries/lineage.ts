/** Which history the database is in, and how a new one begins. */
import type { Sql } from '../connect.ts';

export interface OwnLineage {
  readonly id: string;
  /** False in a database that was restored or copied since the lineage began. */
  readonly isOwn: boolean;
}

/** The current lineage, and whether it began in this very database. */
export async function ownLineage(sql: Sql): Promise<OwnLineage> {
  const [row] = await sql<{ id: string; began: string | null; here: string }[]>`
    select id, database_identity as began, database_identity() as here from lineage`;
  if (!row) throw new Error('the database has no lineage; run `fleetbook migrate`');
  const { id, began, here } = row;
  if (began === null)
    await sql`update lineage set database_identity = ${here} where database_identity is null`;
  return { id, isOwn: began === null || began === here };
}

/** Fences rise by more than runs begin between a backup and its restoration. */
const FENCES_AHEAD = 1_000_000;

/**
 * Begins a new lineage. Every document's key changes with it, so that nothing that the old one published is found. No
 * run from before may store anything, and every schedule's latest slot is due again.
 * @returns its id; undefined when `old` is not the current lineage any more: then somebody else has begun a new one
 */
export async function beginLineage(sql: Sql, old: string): Promise<string | undefined> {
  return sql.begin(async (tx) => {
    const [row] = await tx<{ id: string }[]>`
      update lineage set id = gen_random_uuid(), created_at = now(), database_identity = database_identity()
      where id = ${old} returning id`;
    if (!row) return undefined;
    await tx`update sources set fence = fence + ${FENCES_AHEAD}`;
    await tx`delete from schedule_slots`;
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
export async function revokeAgain(sql: Sql, hashes: readonly string[]): Promise<NamedToken[]> {
  if (hashes.length === 0) return [];
  return sql<NamedToken[]>`
    update tokens t set revoked_at = now(), version = version + 1 from organizations o
    where t.hash = any(array(select decode(h, 'hex') from unnest(${[...hashes]}::text[]) h))
      and t.revoked_at is null and o.id = t.organization_id
    returning t.id, o.slug as organization`;
}

/** Those of these tokens (SHA-256, hexadecimal) that the database does not know. */
export async function unknownTokens(sql: Sql, hashes: readonly string[]): Promise<string[]> {
  if (hashes.length === 0) return [];
  const rows = await sql<{ hash: string }[]>`
    select h as hash from unnest(${[...hashes]}::text[]) h
    where not exists (select from tokens t where t.hash = decode(h, 'hex'))`;
  return rows.map(({ hash }) => hash);
}
