/** Organizations with their counts, for operators. */
import type { Sql } from '../../../db/connection/client.ts';
import { instant } from '../../../db/connection/instant-text.ts';
import { directed, type Page, type PageSearch } from '../../../db/connection/statements.ts';
import type { Organization } from '../../../db/organizations.ts';

/** Times are RFC 3339, to the second. */
export interface OrganizationSummary extends Organization {
  readonly clusters: number;
  readonly tokens: number;
  readonly createdAt: string;
  readonly deletedAt: string | null;
}

/** Returns organizations by slug. @param deletedToo includes deleted ones */
export async function listOrganizations(sql: Sql, deletedToo: boolean): Promise<OrganizationSummary[]> {
  return sql<OrganizationSummary[]>`
    select ${summary(sql)} from organizations o ${counts(sql)}
    where o.deleted_at is null or ${deletedToo} order by o.slug collate "C"`;
}

const BY_SLUG = 'o.slug collate "C" %';

/** The orders of organizations `o`. `k.n` is the count or the time of each. */
const ORDERS = {
  slug: BY_SLUG,
  name: `lower(o.name) collate "C" %, ${BY_SLUG}`,
  clusters: `coalesce(k.n, 0) %, ${BY_SLUG}`,
  tokens: `coalesce(k.n, 0) %, ${BY_SLUG}`,
  // Unused ones come last in descending order.
  used: `k.n is not null %, k.n %, ${BY_SLUG}`,
  created: `o.created_at %, ${BY_SLUG}`,
};
export type OrganizationSort = keyof typeof ORDERS;
export const ORGANIZATION_SORTS = Object.keys(ORDERS) as OrganizationSort[];

export interface OrganizationSearch extends PageSearch<OrganizationSort> {
  readonly text?: string | undefined;
  readonly deleted: 'no' | 'yes' | 'all';
}

export interface FoundOrganization extends OrganizationSummary {
  readonly lastUsedAt: string | null;
}

export type FoundOrganizations = Page<FoundOrganization>;

/** Returns one page. It finds the page first and then counts for its rows only, unless the order needs all counts. */
export async function searchOrganizations(sql: Sql, search: OrganizationSearch): Promise<FoundOrganizations> {
  const { sort, descending, limit, offset } = search;
  const order = sql.unsafe(directed(ORDERS[sort], descending));
  const matching = conditions(sql, search);
  const counted = {
    clusters: sql`select organization_id, count(*) as n from clusters where retired_at is null group by 1`,
    tokens: sql`select organization_id, count(*) as n from tokens t where ${isGood(sql)} group by 1`,
    used: sql`select organization_id, max(${lastUse(sql)}) as n from tokens t group by 1`,
  };
  const isCounted = sort in counted;
  const join = isCounted
    ? sql`left join (${counted[sort as keyof typeof counted]}) k on k.organization_id = o.id`
    : sql``;
  const [rows, [all]] = await Promise.all([
    sql<FoundOrganization[]>`
      with f as (
        select o.id ${isCounted ? sql`, k.n` : sql``} from organizations o ${join} where ${matching}
        order by ${order} limit ${limit} offset ${offset}
      )
      select ${summary(sql)}, ${instant(sql, 't.used_at')} as "lastUsedAt"
      from f k join organizations o on o.id = k.id ${counts(sql)}
      order by ${order}`,
    sql<{ total: number }[]>`select count(*)::int as total from organizations o where ${matching}`,
  ]);
  return { rows, total: all?.total ?? 0 };
}

export async function foundOrganization(sql: Sql, slug: string): Promise<FoundOrganization | undefined> {
  const [row] = await sql<FoundOrganization[]>`
    select ${summary(sql)}, ${instant(sql, 't.used_at')} as "lastUsedAt"
    from organizations o ${counts(sql)} where o.slug = ${slug}`;
  return row;
}

const summary = (sql: Sql) => sql`o.id, o.slug, o.name, c.count as clusters, t.count as tokens,
  ${instant(sql, 'o.created_at')} as "createdAt", ${instant(sql, 'o.deleted_at')} as "deletedAt"`;

const counts = (sql: Sql) => sql`
  cross join lateral (
    select count(*)::int as count from clusters c where c.organization_id = o.id and c.retired_at is null) c
  cross join lateral (
    select count(*) filter (where o.deleted_at is null and ${isGood(sql)})::int as count, max(${lastUse(sql)}) as used_at
    from tokens t where t.organization_id = o.id) t`;

const isGood = (sql: Sql) => sql`t.revoked_at is null and (t.expires_at is null or t.expires_at > now())`;

/** Uses are stored to the minute, which may be before the token was created. */
const lastUse = (sql: Sql) =>
  sql`case when t.last_used_at is not null then greatest(t.last_used_at, t.created_at) end`;

function conditions(sql: Sql, { text, deleted }: OrganizationSearch) {
  const isDeleted = { no: sql`o.deleted_at is null`, yes: sql`o.deleted_at is not null`, all: sql`true` };
  const part = text?.toLowerCase();
  return sql`${isDeleted[deleted]}
    ${part === undefined ? sql`` : sql`and (strpos(o.slug, ${part}) > 0 or strpos(lower(o.name), ${part}) > 0)`}`;
}
