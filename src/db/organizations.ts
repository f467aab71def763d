import type { Sql } from './connection/client.ts';
import type { ConnectionDatabase, Database } from './connection/database.ts';
import { and, eq, isNull, type SQL, sql } from './connection/drizzle.ts';
import { instant } from './connection/instant-text.ts';
import { inOrder, type Page, type PageSearch } from './connection/pages.ts';
import { increment, inTransaction } from './connection/statements.ts';
import { clusters, organizations, tokens } from './schema.ts';
import { recordRetired } from './sync/clusters/cluster-change-log.ts';

export type Organization = Readonly<Pick<typeof organizations.$inferSelect, 'id' | 'slug' | 'name'>>;

/** Times are RFC 3339, to the second. */
export interface OrganizationSummary extends Organization {
  readonly clusters: number;
  readonly tokens: number;
  readonly createdAt: string;
  readonly deletedAt: string | null;
}

const COLUMNS = { id: organizations.id, slug: organizations.slug, name: organizations.name };
const isLive = (slug: string) => and(eq(organizations.slug, slug), isNull(organizations.deletedAt));

export async function findOrganization(sql: Sql, slug: string): Promise<Organization | undefined> {
  const [row] = await sql<Organization[]>`
    select id, slug, name from organizations where slug = ${slug} and deleted_at is null`;
  return row;
}

export async function firstOrganization(db: Database): Promise<Organization | undefined> {
  const live = db.select(COLUMNS).from(organizations).where(isNull(organizations.deletedAt));
  const [row] = await live.orderBy(organizations.id).limit(1);
  return row;
}

/** Returns undefined if an organization has or had the slug. */
export async function createOrganization(
  db: Database,
  slug: string,
  name: string,
): Promise<Organization | undefined> {
  const [row] = await db
    .insert(organizations)
    .values({ slug, name })
    .onConflictDoNothing()
    .returning(COLUMNS);
  return row;
}

/** Returns undefined if the organization does not exist or was deleted. No document shows the name. */
export async function renameOrganization(
  db: Database,
  slug: string,
  name: string,
): Promise<Organization | undefined> {
  const [row] = await db.update(organizations).set({ name }).where(isLive(slug)).returning(COLUMNS);
  return row;
}

/**
 * Deletes an organization by tombstone: readers get neither it nor its clusters, its tokens are revoked, and its slug stays
 * taken. Returns the clusters and tokens that this removed; undefined if it does not exist or was deleted before.
 */
export async function deleteOrganization(db: Database, slug: string) {
  return inTransaction(db, async (tx) => {
    // A running sync could restore clusters. It ends first, and the next one does not find the organization.
    await tx.execute(sql`lock table ${clusters} in share row exclusive mode`);
    const [organization] = await tx
      .update(organizations)
      .set({ deletedAt: sql`now()`, clustersVersion: increment(organizations.clustersVersion) })
      .where(isLive(slug))
      .returning(COLUMNS);
    if (!organization) return undefined;
    await recordRetired(tx, sql`now()`, sql`c.organization_id = ${organization.id}`);
    const retired = await tx
      .update(clusters)
      .set({ retiredAt: sql`now()` })
      .where(and(eq(clusters.organizationId, organization.id), isNull(clusters.retiredAt)));
    // Expired tokens too: a cached one may be on a machine with a wrong clock.
    const revoked = await tx
      .update(tokens)
      .set({ revokedAt: sql`now()`, version: increment(tokens.version) })
      .where(and(eq(tokens.organizationId, organization.id), isNull(tokens.revokedAt)));
    return { ...organization, clusters: retired.count, tokens: revoked.count };
  });
}

/**
 * Locks organizations for the rest of the transaction. A transaction that writes rows of organizations (clusters, users, disk types,
 * slugs, unlisted regions) locks all of them first, in the order of their ids: that avoids deadlocks. Before them it locks the table
 * of clusters, which the deletion of an organization or a user locks exclusively.
 * @param ids a query for ids of organizations
 */
export async function lockOrganizations(db: ConnectionDatabase, ids: SQL): Promise<void> {
  await db.execute(sql`lock table ${clusters} in row exclusive mode`);
  await db.execute(sql`
    select from ${organizations} where ${organizations.id} in (${ids})
    order by ${organizations.id} for no key update`);
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
  const order = inOrder(sql, ORDERS[sort], descending);
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
