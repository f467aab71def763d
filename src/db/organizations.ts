/** Organizations for operators: searched, sorted and paged, however many there are. */

import { instant } from './changes.ts';
import type { Sql } from './connection/client.ts';
import type { Database } from './connection/database.ts';
import { isNull } from './connection/drizzle.ts';
import { organizations } from './schema.ts';

export interface Organization {
  readonly id: number;
  readonly slug: string;
  readonly name: string;
}

/** Instants as RFC 3339, to the second. */
export interface OrganizationSummary extends Organization {
  /** Clusters that are shown. */
  readonly clusters: number;
  /** Tokens that are neither revoked nor expired. */
  readonly tokens: number;
  readonly createdAt: string;
  readonly deletedAt: string | null;
}

/** An organization that is not deleted. */
export async function findOrganization(sql: Sql, slug: string): Promise<Organization | undefined> {
  const [row] = await sql<Organization[]>`
    select id, slug, name from organizations where slug = ${slug} and deleted_at is null`;
  return row;
}

/** Every organization, by slug; those that were deleted only where asked for. */
export async function listOrganizations(sql: Sql, deletedToo: boolean): Promise<OrganizationSummary[]> {
  return sql<OrganizationSummary[]>`
    select o.id, o.slug, o.name, coalesce(c.count, 0) as clusters, coalesce(t.count, 0) as tokens,
      to_char(o.created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as "createdAt",
      to_char(o.deleted_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as "deletedAt"
    from organizations o
    left join (
      select organization_id, count(*)::int from clusters where retired_at is null group by 1
    ) c on c.organization_id = o.id
    left join (
      select organization_id, count(*)::int from tokens
      where revoked_at is null and (expires_at is null or expires_at > now()) group by 1
    ) t on t.organization_id = o.id
    where o.deleted_at is null or ${deletedToo}
    order by o.slug collate "C"`;
}

export const ORGANIZATION_SORTS = ['slug', 'name', 'clusters', 'tokens', 'used', 'created'] as const;
export type OrganizationSort = (typeof ORGANIZATION_SORTS)[number];

export interface OrganizationSearch {
  /** Part of the slug or the name; letters of either case. */
  readonly text?: string | undefined;
  readonly deleted: 'no' | 'yes' | 'all';
  readonly sort: OrganizationSort;
  readonly descending: boolean;
  readonly limit: number;
  readonly offset: number;
}

export interface FoundOrganization extends OrganizationSummary {
  /** When one of its tokens was last used, RFC 3339; null where none ever was. */
  readonly lastUsedAt: string | null;
}

export interface FoundOrganizations {
  readonly rows: readonly FoundOrganization[];
  /** How many there are on all pages. */
  readonly total: number;
}

export async function searchOrganizations(sql: Sql, search: OrganizationSearch): Promise<FoundOrganizations> {
  const matching = conditions(sql, search);
  const [rows, [counted]] = await Promise.all([
    found(sql, search),
    sql<{ total: number }[]>`select count(*)::int as total from organizations o where ${matching}`,
  ]);
  return { rows, total: counted?.total ?? 0 };
}

/** One organization, also one that was deleted. */
export async function foundOrganization(sql: Sql, slug: string): Promise<FoundOrganization | undefined> {
  const [row] = await sql<FoundOrganization[]>`
    select ${summary(sql)} from organizations o ${counts(sql)} where o.slug = ${slug}`;
  return row;
}

/** The page is found first, and only what it shows is counted for each: all of it only for what is sorted by. */
function found(sql: Sql, search: OrganizationSearch) {
  const { sort, limit, offset } = search;
  const counted = {
    clusters: sql`left join (
      select organization_id, count(*) as n from clusters where retired_at is null group by 1) k
      on k.organization_id = o.id`,
    tokens: sql`left join (
      select organization_id, count(*) as n from tokens t where ${isGood(sql)} group by 1) k
      on k.organization_id = o.id`,
    used: sql`left join (
      select organization_id, max(${lastUse(sql)}) as n from tokens t group by 1) k
      on k.organization_id = o.id`,
  };
  const isCounted = sort in counted;
  return sql<FoundOrganization[]>`
    with f as (
      select o.id ${isCounted ? sql`, k.n` : sql``}
      from organizations o ${isCounted ? counted[sort as keyof typeof counted] : sql``}
      where ${conditions(sql, search)}
      order by ${order(sql, search, 'k')} limit ${limit} offset ${offset}
    )
    select ${summary(sql)} from f join organizations o on o.id = f.id ${counts(sql)}
    order by ${order(sql, search, 'f')}`;
}

/** Of organizations `o`. @param of the relation whose `n` is what was counted of each */
function order(sql: Sql, { sort, descending }: OrganizationSearch, of: 'k' | 'f') {
  const direction = descending ? sql`desc` : sql`asc`;
  const last = sql`o.slug collate "C" ${direction}`;
  const counted = sql(`${of}.n`);
  switch (sort) {
    case 'slug':
      return last;
    case 'name':
      return sql`lower(o.name) collate "C" ${direction}, ${last}`;
    case 'clusters':
    case 'tokens':
      return sql`coalesce(${counted}, 0) ${direction}, ${last}`;
    case 'used':
      return sql`${counted} ${descending ? sql`desc nulls last` : sql`asc nulls first`}, ${last}`;
    case 'created':
      return sql`o.created_at ${direction}, ${last}`;
  }
}

/** Of organizations `o` with their `counts`. */
function summary(sql: Sql) {
  return sql`o.id, o.slug, o.name, c.count as clusters, t.count as tokens,
    ${instant(sql, sql`o.created_at`)} as "createdAt", ${instant(sql, sql`o.deleted_at`)} as "deletedAt",
    ${instant(sql, sql`t.used_at`)} as "lastUsedAt"`;
}

function counts(sql: Sql) {
  return sql`
    cross join lateral (
      select count(*)::int as count from clusters c where c.organization_id = o.id and c.retired_at is null) c
    cross join lateral (
      select count(*) filter (where o.deleted_at is null and ${isGood(sql)})::int as count, max(${lastUse(sql)}) as used_at
      from tokens t where t.organization_id = o.id) t`;
}

/** Of a token `t`. */
const isGood = (sql: Sql) => sql`t.revoked_at is null and (t.expires_at is null or t.expires_at > now())`;

/** Kept to the minute, which may lie before the token was made; null for one that was never used. */
const lastUse = (sql: Sql) =>
  sql`case when t.last_used_at is not null then greatest(t.last_used_at, t.created_at) end`;

function conditions(sql: Sql, { text, deleted }: OrganizationSearch) {
  const isDeleted = { no: sql`o.deleted_at is null`, yes: sql`o.deleted_at is not null`, all: sql`true` };
  const search = text?.toLowerCase();
  return sql`${isDeleted[deleted]}
    ${search === undefined ? sql`` : sql`and (strpos(o.slug, ${search}) > 0 or strpos(lower(o.name), ${search}) > 0)`}`;
}

/** The organization that was made first; undefined in a new database. */
export async function firstOrganization(db: Database): Promise<Organization | undefined> {
  const [row] = await db
    .select({ id: organizations.id, slug: organizations.slug, name: organizations.name })
    .from(organizations)
    .where(isNull(organizations.deletedAt))
    .orderBy(organizations.id)
    .limit(1);
  return row;
}

export interface User {
  readonly id: number;
  readonly firstName: string;
  readonly lastName: string;
  /** Clusters that are shown with this creator. */
  readonly clusters: number;
}

/** The people of an organization, by name; without those who were renamed or deleted. */
export async function listUsers(sql: Sql, organizationId: number): Promise<User[]> {
  return sql<User[]>`
    select u.id, u.first_name as "firstName", u.last_name as "lastName",
      (select count(*)::int from clusters c
        where c.organization_id = u.organization_id and c.user_id = u.id and c.retired_at is null) as clusters
    from users u
    where u.organization_id = ${organizationId} and u.replaced_by is null
      and (u.first_name, u.last_name) <> ('', '')
    order by u.last_name collate "C", u.first_name collate "C"`;
}
