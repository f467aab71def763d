/** Organizations with their counts, for operators. */
import type { Database } from '../../../db/connection/client.ts';
import { sql } from '../../../db/connection/drizzle.ts';
import {
  directed,
  type Page,
  type PageSearch,
  type RowOf,
  rfc3339,
} from '../../../db/connection/statements.ts';
import type { Organization } from '../../../db/organizations.ts';

/** Times are RFC 3339, to the second. */
export interface OrganizationSummary extends Organization {
  readonly clusters: number;
  readonly tokens: number;
  readonly createdAt: string;
  readonly deletedAt: string | null;
}

/** Returns organizations by slug. @param deletedToo includes deleted ones */
export async function listOrganizations(db: Database, deletedToo: boolean): Promise<OrganizationSummary[]> {
  return db.execute<RowOf<OrganizationSummary>>(sql`
    select ${summary()} from organizations o ${counts()}
    where o.deleted_at is null or ${deletedToo} order by o.slug collate "C"`);
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
export async function searchOrganizations(
  db: Database,
  search: OrganizationSearch,
): Promise<FoundOrganizations> {
  const { sort, descending, limit, offset } = search;
  const order = sql.raw(directed(ORDERS[sort], descending));
  const matching = conditions(search);
  const counted = {
    clusters: sql`select organization_id, count(*) as n from clusters where retired_at is null group by 1`,
    tokens: sql`select organization_id, count(*) as n from tokens t where ${isGood()} group by 1`,
    used: sql`select organization_id, max(${lastUse()}) as n from tokens t group by 1`,
  };
  const isCounted = sort in counted;
  const join = isCounted
    ? sql`left join (${counted[sort as keyof typeof counted]}) k on k.organization_id = o.id`
    : sql``;
  const [rows, [all]] = await Promise.all([
    db.execute<RowOf<FoundOrganization>>(sql`
      with f as (
        select o.id ${isCounted ? sql`, k.n` : sql``} from organizations o ${join} where ${matching}
        order by ${order} limit ${limit} offset ${offset}
      )
      select ${summary()}, ${rfc3339(sql`t.used_at`)} as "lastUsedAt"
      from f k join organizations o on o.id = k.id ${counts()}
      order by ${order}`),
    db.execute<RowOf<{ total: number }>>(
      sql`select count(*)::int as total from organizations o where ${matching}`,
    ),
  ]);
  return { rows, total: all?.total ?? 0 };
}

export async function foundOrganization(db: Database, slug: string): Promise<FoundOrganization | undefined> {
  const [row] = await db.execute<RowOf<FoundOrganization>>(sql`
    select ${summary()}, ${rfc3339(sql`t.used_at`)} as "lastUsedAt"
    from organizations o ${counts()} where o.slug = ${slug}`);
  return row;
}

const summary = () => sql`o.id, o.slug, o.name, c.count as clusters, t.count as tokens,
  ${rfc3339(sql`o.created_at`)} as "createdAt", ${rfc3339(sql`o.deleted_at`)} as "deletedAt"`;

const counts = () => sql`
  cross join lateral (
    select count(*)::int as count from clusters c where c.organization_id = o.id and c.retired_at is null) c
  cross join lateral (
    select count(*) filter (where o.deleted_at is null and ${isGood()})::int as count, max(${lastUse()}) as used_at
    from tokens t where t.organization_id = o.id) t`;

const isGood = () => sql`t.revoked_at is null and (t.expires_at is null or t.expires_at > now())`;

/** Uses are stored to the minute, which may be before the token was created. */
const lastUse = () =>
  sql`case when t.last_used_at is not null then greatest(t.last_used_at, t.created_at) end`;

function conditions({ text, deleted }: OrganizationSearch) {
  const isDeleted = { no: sql`o.deleted_at is null`, yes: sql`o.deleted_at is not null`, all: sql`true` };
  const part = text?.toLowerCase();
  return sql`${isDeleted[deleted]}
    ${part === undefined ? sql`` : sql`and (strpos(o.slug, ${part}) > 0 or strpos(lower(o.name), ${part}) > 0)`}`;
}
