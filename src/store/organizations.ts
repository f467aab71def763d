import { and, eq, isNull } from 'drizzle-orm';
import type { Database } from './connect.ts';
import { organizations } from './schema.ts';

export interface Organization {
  readonly id: number;
  readonly slug: string;
  readonly name: string;
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
