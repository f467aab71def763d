import type { Sql } from '../client.ts';

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
