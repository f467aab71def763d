/** People who created clusters. Control planes name them; operators may show them otherwise. */
import type { Sql } from '../connect.ts';

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
  sql: Sql,
  organizationId: number,
  id: number,
  name: UserName,
): Promise<ReplacedUser | undefined> {
  return replaceUser(sql, organizationId, id, name);
}

/**
 * Deletes a person by tombstone: clusters show two empty names instead, also where a control plane says the name again.
 * Undefined when there is no such person.
 */
export async function deleteUser(
  sql: Sql,
  organizationId: number,
  id: number,
): Promise<ReplacedUser | undefined> {
  return replaceUser(sql, organizationId, id, NOBODY);
}

async function replaceUser(
  sql: Sql,
  organizationId: number,
  id: number,
  { firstName, lastName }: UserName,
): Promise<ReplacedUser | undefined> {
  return sql.begin(async (tx): Promise<ReplacedUser | undefined> => {
    // A sync under way may be naming this very person; it ends first.
    await tx`lock table clusters in share row exclusive mode`;
    const [was] = await tx<UserName[]>`
      select first_name as "firstName", last_name as "lastName" from users
      where organization_id = ${organizationId} and id = ${id} and replaced_by is null
        and (first_name, last_name) <> ('', '')
      for update`;
    if (!was) return undefined;
    if (was.firstName === firstName && was.lastName === lastName) return { was, id, clusters: 0 };
    await tx`
      insert into users (organization_id, first_name, last_name)
      select ${organizationId}, ${firstName}, ${lastName}
      where not exists (
        select from users
        where organization_id = ${organizationId} and first_name = ${firstName} and last_name = ${lastName})
      on conflict do nothing`;
    const [shown] = await tx<{ id: number }[]>`
      update users set replaced_by = null
      where organization_id = ${organizationId} and first_name = ${firstName} and last_name = ${lastName}
      returning id`;
    if (!shown) throw new Error('unreachable: the row was there or has been made');
    // Whoever this person stood in for is shown as the new one too: nobody is replaced by somebody replaced.
    await tx`
      update users set replaced_by = ${shown.id}
      where organization_id = ${organizationId} and (id = ${id} or replaced_by = ${id})`;
    const moved = await tx<{ shown: boolean }[]>`
      update clusters set user_id = ${shown.id} where organization_id = ${organizationId} and user_id = ${id}
      returning retired_at is null as shown`;
    const clusters = moved.filter((cluster) => cluster.shown).length;
    if (clusters > 0) {
      await tx`update organizations set clusters_version = clusters_version + 1 where id = ${organizationId}`;
    }
    return { was, id: shown.id, clusters };
  });
}
