import type { Sql } from '../client.ts';

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

/** An organization that is not deleted. */
export async function findOrganization(sql: Sql, slug: string): Promise<Organization | undefined> {
  const [row] = await sql<Organization[]>`
    select id, slug, name from organizations where slug = ${slug} and deleted_at is null`;
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
