import type { ConnectionDatabase, Database } from './connection/client.ts';
import { and, eq, isNull, type SQL, sql } from './connection/drizzle.ts';
import { increment, inTransaction } from './connection/statements.ts';
import { recordRetiredClusters } from './runs/stored-changes.ts';
import { clusters, organizations, tokens } from './schema.ts';

export type Organization = Readonly<Pick<typeof organizations.$inferSelect, 'id' | 'slug' | 'name'>>;

const COLUMNS = { id: organizations.id, slug: organizations.slug, name: organizations.name };
const isLive = (slug: string) => and(eq(organizations.slug, slug), isNull(organizations.deletedAt));

export async function findOrganization(db: Database, slug: string): Promise<Organization | undefined> {
  const [row] = await db.select(COLUMNS).from(organizations).where(isLive(slug));
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
    await recordRetiredClusters(tx, sql`now()`, sql`c.organization_id = ${organization.id}`);
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
