import type { Database } from '../connection/connect.ts';
import { and, eq, isNull, sql } from '../connection/drizzle.ts';
import { increment, inTransaction } from '../connection/statements.ts';
import type { Organization } from '../organizations.ts';
import { clusters, organizations, tokens } from '../schema.ts';
import { recordRetired } from '../sync/clusters/changes.ts';

const columns = { id: organizations.id, slug: organizations.slug, name: organizations.name };

const isLive = (slug: string) => and(eq(organizations.slug, slug), isNull(organizations.deletedAt));

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

/** Gives an organization another name; no document shows it. Undefined when there is none, or it was deleted. */
export async function renameOrganization(
  db: Database,
  slug: string,
  name: string,
): Promise<Organization | undefined> {
  const [row] = await db.update(organizations).set({ name }).where(isLive(slug)).returning(columns);
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
export async function deleteOrganization(
  db: Database,
  slug: string,
): Promise<DeletedOrganization | undefined> {
  return inTransaction(db, async (tx) => {
    // A sync under way could bring its clusters back: it ends first, and the next one finds no organization.
    await tx.execute(sql`lock table ${clusters} in share row exclusive mode`);
    const [organization] = await tx
      .update(organizations)
      .set({ deletedAt: sql`now()`, clustersVersion: increment(organizations.clustersVersion) })
      .where(isLive(slug))
      .returning(columns);
    if (!organization) return undefined;
    await recordRetired(tx, sql`now()`, sql`c.organization_id = ${organization.id}`);
    const retired = await tx
      .update(clusters)
      .set({ retiredAt: sql`now()` })
      .where(and(eq(clusters.organizationId, organization.id), isNull(clusters.retiredAt)));
    // Also those that have expired: a copy of one may lie where the clock is wrong.
    const revoked = await tx
      .update(tokens)
      .set({ revokedAt: sql`now()`, version: increment(tokens.version) })
      .where(and(eq(tokens.organizationId, organization.id), isNull(tokens.revokedAt)));
    return { ...organization, clusters: retired.count, tokens: revoked.count };
  });
}
