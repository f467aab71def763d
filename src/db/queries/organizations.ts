import { and, eq, isNull } from 'drizzle-orm';
import type { Database, Sql } from '../connect.ts';
import { organizations } from '../schema.ts';

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

const columns = { id: organizations.id, slug: organizations.slug, name: organizations.name };

/** Makes an organization. Undefined when the slug is taken, also by one that was deleted. */
export async function createOrganization(
  db: Database,
  slug: string,
  name: string,
): Promise<Organization | undefined> {
  const [row] = await db
    .insert(organizations)
    .values({ slug, name })
    .onConflictDoNothing()
    .returning(columns);
  return row;
}

/** An organization that is not deleted. */
export async function findOrganization(db: Database, slug: string): Promise<Organization | undefined> {
  const [row] = await db
    .select(columns)
    .from(organizations)
    .where(and(eq(organizations.slug, slug), isNull(organizations.deletedAt)));
  return row;
}

/** The organization that was made first; undefined in a new database. */
export async function firstOrganization(db: Database): Promise<Organization | undefined> {
  const [row] = await db
    .select(columns)
    .from(organizations)
    .where(isNull(organizations.deletedAt))
    .orderBy(organizations.id)
    .limit(1);
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

/** Gives an organization another name; no document shows it. Undefined when there is none, or it was deleted. */
export async function renameOrganization(
  sql: Sql,
  slug: string,
  name: string,
): Promise<Organization | undefined> {
  const [row] = await sql<Organization[]>`
    update organizations set name = ${name} where slug = ${slug} and deleted_at is null returning id, slug, name`;
  return row;
}

export interface DeletedOrganization extends Organization {
  /** Clusters that were shown until now. */
  readonly clusters: number;
  /** Tokens that this revoked. */
  readonly tokens: number;
}

/**
 * Deletes an organization by tombstone: it, its people and its clusters are shown no more, its tokens are revoked, and
 * its slug stays taken. Undefined when there is none, or it was deleted already.
 */
export async function deleteOrganization(sql: Sql, slug: string): Promise<DeletedOrganization | undefined> {
  return sql.begin(async (tx): Promise<DeletedOrganization | undefined> => {
    // A sync under way could bring its clusters back: it ends first, and the next one finds no organization.
    await tx`lock table clusters in share row exclusive mode`;
    const [organization] = await tx<Organization[]>`
      update organizations set deleted_at = now(), clusters_version = clusters_version + 1
      where slug = ${slug} and deleted_at is null returning id, slug, name`;
    if (!organization) return undefined;
    const retired = await tx`
      update clusters set retired_at = now() where organization_id = ${organization.id} and retired_at is null`;
    // Also those that have expired: a copy of one may lie where the clock is wrong.
    const revoked = await tx`
      update tokens set revoked_at = now(), version = version + 1
      where organization_id = ${organization.id} and revoked_at is null`;
    return { ...organization, clusters: retired.count, tokens: revoked.count };
  });
}
