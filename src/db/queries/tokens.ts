import { and, eq, gt, isNull, or, sql } from 'drizzle-orm';
import { hashToken, newToken, type Scope } from '../../domain/token.ts';
import type { Database, Sql } from '../connect.ts';
import { organizations, tokens } from '../schema.ts';

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

/** Instants as RFC 3339, to the second; the last use to the minute, but never before the token was made. */
export interface TokenSummary {
  readonly id: number;
  /** The organization's slug. */
  readonly organization: string;
  readonly scopes: readonly string[];
  readonly state: 'good' | 'expired' | 'revoked';
  readonly createdAt: string;
  readonly expiresAt: string | null;
  readonly revokedAt: string | null;
  readonly lastUsedAt: string | null;
}

/** Every token, or those of one organization, by id. */
export async function listTokens(sql: Sql, organizationId: number | undefined): Promise<TokenSummary[]> {
  const instant = (column: string) =>
    sql`to_char(${sql(column)} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')`;
  return sql<TokenSummary[]>`
    select t.id, o.slug as organization, t.scopes,
      case when t.revoked_at is not null or o.deleted_at is not null then 'revoked'
        when t.expires_at <= now() then 'expired' else 'good' end as state,
      ${instant('t.created_at')} as "createdAt", ${instant('t.expires_at')} as "expiresAt",
      ${instant('t.revoked_at')} as "revokedAt", ${instant('u.last_used_at')} as "lastUsedAt"
    from tokens t join organizations o on o.id = t.organization_id
    -- Kept to the minute, which may lie before the token was made.
    left join lateral (
      select greatest(t.last_used_at, t.created_at) as last_used_at where t.last_used_at is not null) u on true
    where t.organization_id = ${organizationId ?? null} or ${organizationId === undefined}
    order by t.id`;
}

export interface RotatedToken extends CreatedToken {
  /** The organization's slug. */
  readonly organization: string;
  readonly scopes: readonly string[];
  /** RFC 3339; null for a token that does not expire. */
  readonly expiresAt: string | null;
  /** RFC 3339: from then on the old token is refused. Null when it is refused already. */
  readonly oldExpiresAt: string | null;
}

/**
 * Makes a token with the organization, scopes and expiry of another one, which is revoked at once or, with a grace (in
 * milliseconds), expires when that is over. @returns why not, when the old one is not good any more
 */
export async function rotateToken(
  sql: Sql,
  id: number,
  graceMs: number,
): Promise<RotatedToken | 'unknown' | 'revoked' | 'expired'> {
  const token = newToken();
  return sql.begin(async (tx) => {
    const [old] = await tx<{ organization: string; state: 'good' | 'revoked' | 'expired' }[]>`
      select o.slug as organization,
        case when t.revoked_at is not null or o.deleted_at is not null then 'revoked'
          when t.expires_at <= now() then 'expired' else 'good' end as state
      from tokens t join organizations o on o.id = t.organization_id where t.id = ${id} for update of t`;
    if (!old) return 'unknown';
    if (old.state !== 'good') return old.state;
    const [made] = await tx<{ id: number; scopes: string[]; expiresAt: Date | null }[]>`
      insert into tokens (organization_id, hash, scopes, expires_at)
      select organization_id, ${stored(token)}, scopes, expires_at from tokens where id = ${id}
      returning id, scopes, expires_at as "expiresAt"`;
    if (!made) throw new Error('unreachable: an insert returns its row');
    const [left] =
      graceMs > 0
        ? await tx<{ expiresAt: Date }[]>`
            update tokens
            set expires_at = least(expires_at, now() + ${graceMs} * interval '1 ms'), version = version + 1
            where id = ${id} returning expires_at as "expiresAt"`
        : await tx<{ expiresAt: null }[]>`
            update tokens set revoked_at = now(), version = version + 1
            where id = ${id} returning null as "expiresAt"`;
    return {
      id: made.id,
      token,
      organization: old.organization,
      scopes: made.scopes,
      expiresAt: made.expiresAt?.toISOString() ?? null,
      oldExpiresAt: left?.expiresAt?.toISOString() ?? null,
    };
  });
}
