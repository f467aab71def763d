import { hashToken, newToken, type Scope } from '../../domain/access/token.ts';
import type { Database } from '../connection/connect.ts';
import { and, eq, isNull, sql } from '../connection/drizzle.ts';
import { increment, inTransaction } from '../connection/statements.ts';
import { organizations, tokens } from '../schema.ts';

export interface CreatedToken {
  readonly id: number;
  /** The token itself: shown once, stored nowhere. */
  readonly token: string;
}

const stored = (token: string): Buffer => Buffer.from(hashToken(token), 'hex');

export async function createToken(
  db: Database,
  options: {
    organizationId: number;
    name?: string | undefined;
    scopes: readonly Scope[];
    expiresAt?: Date | undefined;
  },
): Promise<CreatedToken> {
  const token = newToken();
  const [row] = await db
    .insert(tokens)
    .values({
      organizationId: options.organizationId,
      name: options.name ?? null,
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
    .set({ revokedAt: sql`now()`, version: increment(tokens.version) })
    .where(and(eq(tokens.id, id), isNull(tokens.revokedAt)))
    .returning({ id: tokens.id });
  if (revoked.length > 0) return 'revoked';
  const known = await db.select({ id: tokens.id }).from(tokens).where(eq(tokens.id, id));
  return known.length > 0 ? 'was revoked' : undefined;
}

export interface RotatedToken extends CreatedToken {
  /** The organization's slug. */
  readonly organization: string;
  readonly name: string | null;
  readonly scopes: readonly string[];
  /** RFC 3339; null for a token that does not expire. */
  readonly expiresAt: string | null;
  /** RFC 3339: from then on the old token is refused. Null when it is refused already. */
  readonly oldExpiresAt: string | null;
}

/**
 * Makes a token with the organization, name, scopes and expiry of another one, which is revoked at once or, with a grace (in
 * milliseconds), expires when that is over. @returns why not, when the old one is not good any more
 */
export async function rotateToken(
  db: Database,
  id: number,
  graceMs: number,
): Promise<RotatedToken | 'unknown' | 'revoked' | 'expired'> {
  const token = newToken();
  return inTransaction(db, async (tx) => {
    const [old] = await tx
      .select({
        organizationId: tokens.organizationId,
        organization: organizations.slug,
        name: tokens.name,
        scopes: tokens.scopes,
        expiresAt: tokens.expiresAt,
        isRevoked: sql<boolean>`${tokens.revokedAt} is not null or ${organizations.deletedAt} is not null`,
        isExpired: sql<boolean>`coalesce(${tokens.expiresAt} <= now(), false)`,
      })
      .from(tokens)
      .innerJoin(organizations, eq(organizations.id, tokens.organizationId))
      .where(eq(tokens.id, id))
      .for('update', { of: tokens });
    if (!old) return 'unknown';
    if (old.isRevoked) return 'revoked';
    if (old.isExpired) return 'expired';
    const { organizationId, organization, name, scopes, expiresAt } = old;
    const [made] = await tx
      .insert(tokens)
      .values({ organizationId, name, hash: stored(token), scopes, expiresAt })
      .returning({ id: tokens.id });
    if (!made) throw new Error('unreachable: an insert returns its row');
    const refused =
      graceMs > 0
        ? { expiresAt: sql`least(${tokens.expiresAt}, now() + ${graceMs} * interval '1 ms')` }
        : { revokedAt: sql`now()` };
    const [left] = await tx
      .update(tokens)
      .set({ ...refused, version: increment(tokens.version) })
      .where(eq(tokens.id, id))
      .returning({ expiresAt: tokens.expiresAt });
    return {
      id: made.id,
      token,
      organization,
      name,
      scopes,
      expiresAt: instantOf(expiresAt),
      oldExpiresAt: graceMs > 0 ? instantOf(left?.expiresAt) : null,
    };
  });
}

/** Postgres' own text of an instant as RFC 3339. */
function instantOf(text: string | null | undefined): string | null {
  return text == null ? null : new Date(text).toISOString();
}
