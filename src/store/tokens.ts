import { and, eq, gt, isNull, or, sql } from 'drizzle-orm';
import { hashToken, newToken, type Scope } from '../domain/token.ts';
import type { Database } from './connect.ts';
import { organizations, tokens } from './schema.ts';

export interface CreatedToken {
  readonly id: number;
  /** The token itself: shown once, stored nowhere. */
  readonly token: string;
}

const stored = (token: string): Buffer => Buffer.from(hashToken(token), 'hex');

export async function createToken(
  db: Database,
  options: { organizationId: number; scopes: readonly Scope[]; expiresAt?: Date | undefined },
): Promise<CreatedToken> {
  const token = newToken();
  const [row] = await db
    .insert(tokens)
    .values({
      organizationId: options.organizationId,
      hash: stored(token),
      scopes: [...options.scopes],
      expiresAt: options.expiresAt?.toISOString() ?? null,
    })
    .returning({ id: tokens.id });
  if (!row) throw new Error('unreachable: an insert returns its row');
  return { id: row.id, token };
}

/** Revokes a token; its row stays as a tombstone. Undefined when there is no such token. */
export async function revokeToken(db: Database, id: number): Promise<'revoked' | 'was revoked' | undefined> {
  const revoked = await db
    .update(tokens)
    .set({ revokedAt: sql`now()`, version: sql`${tokens.version} + 1` })
    .where(and(eq(tokens.id, id), isNull(tokens.revokedAt)))
    .returning({ id: tokens.id });
  if (revoked.length > 0) return 'revoked';
  const known = await db.select({ id: tokens.id }).from(tokens).where(eq(tokens.id, id));
  return known.length > 0 ? 'was revoked' : undefined;
}

/** Whether this very token is good now, e.g. the one that an earlier start kept in a file. */
export async function tokenWorks(db: Database, token: string, organizationId: number): Promise<boolean> {
  const rows = await db
    .select({ id: tokens.id })
    .from(tokens)
    .innerJoin(organizations, eq(organizations.id, tokens.organizationId))
    .where(
      and(
        eq(tokens.hash, stored(token)),
        eq(tokens.organizationId, organizationId),
        isNull(organizations.deletedAt),
        isNull(tokens.revokedAt),
        or(isNull(tokens.expiresAt), gt(tokens.expiresAt, sql`now()`)),
      ),
    );
  return rows.length > 0;
}
