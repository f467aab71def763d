import type { SessionDatabase } from '../connection/connect.ts';
import { type SQL, sql } from '../connection/drizzle.ts';
import { clusters, organizations } from '../schema.ts';

/**
 * Locks organizations for the rest of the transaction. Whoever writes rows of organizations (clusters, their users,
 * disk types, slugs and unlisted regions) has locked them first, all of them and in the order of their ids: so no two
 * wait for each other, and each finds what the one before it has left. Before them comes the table, which who deletes
 * an organization, or a person, locks whole.
 * @param ids a query for ids of organizations
 */
export async function lockOrganizations(db: SessionDatabase, ids: SQL): Promise<void> {
  await db.execute(sql`lock table ${clusters} in row exclusive mode`);
  await db.execute(sql`
    select from ${organizations} where ${organizations.id} in (${ids})
    order by ${organizations.id} for no key update`);
}
