import type { Sql } from './client.ts';

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
