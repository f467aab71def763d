/** Users: the creators of clusters, as control planes name them. Operators can rename or delete them. */

import type { Database } from './connection/connect.ts';
import { and, eq, isNull, ne, or, sql } from './connection/drizzle.ts';
import { insertInto, inTransaction } from './connection/statements.ts';
import { clusters, organizations, users } from './schema.ts';
import { RAISE } from './versions.ts';

export type UserName = Readonly<Pick<typeof users.$inferSelect, 'firstName' | 'lastName'>>;

export interface User extends UserName {
  readonly id: number;
  /** Clusters with this creator that are not retired. */
  readonly clusters: number;
}

/** Returns the users of an organization by name, without renamed and deleted ones. */
export async function listUsers(db: Database, organizationId: number): Promise<User[]> {
  const { id, firstName, lastName } = users;
  const isCreator = and(
    eq(clusters.organizationId, users.organizationId),
    eq(clusters.userId, id),
    isNull(clusters.retiredAt),
  );
  return db
    .select({ id, firstName, lastName, clusters: db.$count(clusters, isCreator) })
    .from(users)
    .where(
      and(
        eq(users.organizationId, organizationId),
        isNull(users.replacedBy),
        or(ne(firstName, ''), ne(lastName, '')),
      ),
    )
    .orderBy(sql`${lastName} collate "C"`, sql`${firstName} collate "C"`);
}

export interface ReplacedUser {
  readonly was: UserName;
  /** The id of the user that clusters show from now on. */
  readonly id: number;
  readonly clusters: number;
}

/** Renames a user for all later reports too. If the new name exists, both users become one. Undefined: no such user. */
export async function renameUser(
  db: Database,
  organizationId: number,
  id: number,
  { firstName, lastName }: UserName,
): Promise<ReplacedUser | undefined> {
  const ofOrganization = eq(users.organizationId, organizationId);
  return inTransaction(db, async (tx) => {
    // A running sync could write this user. It ends first.
    await tx.execute(sql`lock table ${clusters} in share row exclusive mode`);
    const isNamed = or(ne(users.firstName, ''), ne(users.lastName, ''));
    const [was] = await tx
      .select({ firstName: users.firstName, lastName: users.lastName })
      .from(users)
      .where(and(ofOrganization, eq(users.id, id), isNull(users.replacedBy), isNamed))
      .for('update');
    if (!was) return undefined;
    if (was.firstName === firstName && was.lastName === lastName) return { was, id, clusters: 0 };
    const isSuccessor = and(ofOrganization, eq(users.firstName, firstName), eq(users.lastName, lastName));
    // The condition avoids a conflict, which would use up an id.
    await tx.execute(sql`
      ${insertInto(users, { organizationId, firstName, lastName })}
      where not exists (select from ${users} where ${isSuccessor})
      on conflict do nothing`);
    const [successor] = await tx
      .update(users)
      .set({ replacedBy: null })
      .where(isSuccessor)
      .returning({ id: users.id });
    if (!successor) throw new Error('unreachable: the successor is inserted above');
    // Users that this user replaced get the successor too. So no chain of replacements arises.
    await tx
      .update(users)
      .set({ replacedBy: successor.id })
      .where(and(ofOrganization, or(eq(users.id, id), eq(users.replacedBy, id))));
    const moved = await tx
      .update(clusters)
      .set({ userId: successor.id })
      .where(and(eq(clusters.organizationId, organizationId), eq(clusters.userId, id)))
      .returning({ retiredAt: clusters.retiredAt });
    const visible = moved.filter(({ retiredAt }) => retiredAt === null).length;
    if (visible > 0) await tx.execute(sql`${RAISE.clusters} where ${organizations.id} = ${organizationId}`);
    return { was, id: successor.id, clusters: visible };
  });
}

/** Deletes a user by tombstone: clusters show two empty names, also if a control plane reports the user again. */
export async function deleteUser(
  db: Database,
  organizationId: number,
  id: number,
): Promise<ReplacedUser | undefined> {
  return renameUser(db, organizationId, id, { firstName: '', lastName: '' });
}
