import type { Sql } from '../client.ts';
import { instant } from './changes.ts';

/** Instants as RFC 3339, to the second; the last use to the minute, but never before the token was made. */
export interface TokenSummary {
  readonly id: number;
  /** The organization's slug. */
  readonly organization: string;
  /** Null for a token without a name. */
  readonly name: string | null;
  readonly scopes: readonly string[];
  readonly state: 'good' | 'expired' | 'revoked';
  readonly createdAt: string;
  readonly expiresAt: string | null;
  readonly revokedAt: string | null;
  readonly lastUsedAt: string | null;
}

/** Every token, or those of one organization, by id. */
export async function listTokens(sql: Sql, organizationId: number | undefined): Promise<TokenSummary[]> {
  return sql<TokenSummary[]>`
    ${summaries(sql)} where t.organization_id = ${organizationId ?? null} or ${organizationId === undefined}
    order by t.id`;
}

export interface TokenPage {
  readonly rows: readonly TokenSummary[];
  /** How many there are on all pages. */
  readonly total: number;
  /** Those of them that are good. */
  readonly good: number;
}

/** Tokens of one organization: those that are good first, of either kind the youngest first. */
export async function tokenPage(
  sql: Sql,
  organizationId: number,
  { limit, offset }: { readonly limit: number; readonly offset: number },
): Promise<TokenPage> {
  const [rows, [counted]] = await Promise.all([
    sql<TokenSummary[]>`
      ${summaries(sql)} where t.organization_id = ${organizationId}
      order by t.revoked_at is not null or o.deleted_at is not null or coalesce(t.expires_at <= now(), false), t.id desc
      limit ${limit} offset ${offset}`,
    sql<{ total: number; good: number }[]>`
      select count(*)::int as total, count(*) filter (
        where t.revoked_at is null and o.deleted_at is null and (t.expires_at is null or t.expires_at > now()))::int as good
      from tokens t join organizations o on o.id = t.organization_id where t.organization_id = ${organizationId}`,
  ]);
  return { rows, total: counted?.total ?? 0, good: counted?.good ?? 0 };
}

/** Of the tokens `t` and their organizations `o`, without a condition. */
function summaries(sql: Sql) {
  return sql`
    select t.id, o.slug as organization, t.name, t.scopes,
      case when t.revoked_at is not null or o.deleted_at is not null then 'revoked'
        when t.expires_at <= now() then 'expired' else 'good' end as state,
      ${instant(sql, sql`t.created_at`)} as "createdAt", ${instant(sql, sql`t.expires_at`)} as "expiresAt",
      ${instant(sql, sql`t.revoked_at`)} as "revokedAt", ${instant(sql, sql`u.last_used_at`)} as "lastUsedAt"
    from tokens t join organizations o on o.id = t.organization_id
    -- Kept to the minute, which may lie before the token was made.
    left join lateral (
      select greatest(t.last_used_at, t.created_at) as last_used_at where t.last_used_at is not null) u on true`;
}

/** The slugs of the organizations of tokens, by the tokens' ids. */
export async function organizationsOfTokens(
  sql: Sql,
  ids: readonly number[],
): Promise<ReadonlyMap<number, string>> {
  if (ids.length === 0) return new Map();
  const rows = await sql<{ id: number; slug: string }[]>`
    select t.id, o.slug from tokens t join organizations o on o.id = t.organization_id where t.id = any(${[...ids]})`;
  return new Map(rows.map(({ id, slug }) => [id, slug]));
}
