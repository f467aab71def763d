/** People who created clusters. Control planes name them; operators may show them otherwise. */
import type { Database } from '../connection/connect.ts';
import { and, eq, isNull, ne, or, sql } from '../connection/drizzle.ts';
import { increment, insertInto, inTransaction } from '../connection/statements.ts';
import { clusters, organizations, users } from '../schema.ts';

export interface UserName {
  readonly firstName: string;
  readonly lastName: string;
}

const NOBODY: UserName = { firstName: '', lastName: '' };

export interface ReplacedUser {
  /** What the person was shown as until now. */
  readonly was: UserName;
  /** The id under which the person is listed from now on. */
  readonly id: number;
  /** Clusters that show the difference. */
  readonly clusters: number;
}

/**
 * Shows a person under another name from now on, also where a control plane says the old one again. A name that
 * somebody else of the organization has makes one person of two. Undefined when there is no such person.
 */
export async function renameUser(
  db: Database,
  organizationId: number,
  id: number,
  name: UserName,
): Promise<ReplacedUser | undefined> {
  const { firstName, lastName } = name;
  return inTransaction(db, async (tx) => {
    // A sync under way may be naming this very person; it ends first.
    await tx.execute(sql`lock table ${clusters} in share row exclusive mode`);
    const [was] = await tx
      .select({ firstName: users.firstName, lastName: users.lastName })
      .from(users)
      .where(
        and(
          eq(users.organizationId, organizationId),
          eq(users.id, id),
          isNull(users.replacedBy),
          or(ne(users.firstName, ''), ne(users.lastName, '')),
        ),
      )
      .for('update');
    if (!was) return undefined;
    if (was.firstName === firstName && was.lastName === lastName) return { was, id, clusters: 0 };
    const isSuccessor = and(
      eq(users.organizationId, organizationId),
      eq(users.firstName, firstName),
      eq(users.lastName, lastName),
    );
    // Found before it is inserted: ON CONFLICT would burn an id.
    await tx.execute(sql`
      ${insertInto(users, { organizationId, firstName, lastName })}
      where not exists (select from ${users} where ${isSuccessor})
      on conflict do nothing`);
    const [shown] = await tx
      .update(users)
      .set({ replacedBy: null })
      .where(isSuccessor)
      .returning({ id: users.id });
    if (!shown) throw new Error('unreachable: the row was there or has been made');
    // Whoever this person stood in for is shown as the new one too: nobody is replaced by somebody replaced.
    await tx
      .update(users)
      .set({ replacedBy: shown.id })
      .where(and(eq(users.organizationId, organizationId), or(eq(users.id, id), eq(users.replacedBy, id))));
    const moved = await tx
      .update(clusters)
      .set({ userId: shown.id })
      .where(and(eq(clusters.organizationId, organizationId), eq(clusters.userId, id)))
      .returning({ retiredAt: clusters.retiredAt });
    const visible = moved.filter(({ retiredAt }) => retiredAt === null).length;
    if (visible > 0) {
      await tx
        .update(organizations)
        .set({ clustersVersion: increment(organizations.clustersVersion) })
        .where(eq(organizations.id, organizationId));
    }
    return { was, id: shown.id, clusters: visible };
  });
}

/**
 * Deletes a person by tombstone: clusters show two empty names instead, also where a control plane says the name again.
 * Undefined when there is no such person.
 */
export async function deleteUser(
  db: Database,
  organizationId: number,
  id: number,
): Promise<ReplacedUser | undefined> {
  return renameUser(db, organizationId, id, NOBODY);
}
