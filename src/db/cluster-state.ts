/** What is kept of a cluster when it changes. Text, since readers' statements and Drizzle's take it alike. */
import { CLUSTER_FIELDS, type ClusterField } from '../domain/changes.ts';

/** Of a cluster `c` in the region `r` of the provider `p`, on the machine `m`. */
const FIELDS: Readonly<Record<ClusterField, string>> = {
  name: 'c.name',
  slug: 'c.slug',
  provider: 'p.name',
  region: 'r.code',
  machine: 'm.name',
  status: 'c.status',
  shards: 'c.shards::text',
  replicas: 'c.replicas::text',
  user: 'c.user_id::text',
  disks: `(
    select string_agg(k.size || ' ' || k.unit || ' ' || t.name || ' at ' || trim_scale(t.source_amount) || ' ' ||
      t.source_currency || '/' || t.source_per || case when k.autoscaling then ', autoscaling' else '' end,
      '; ' order by k.position)
    from disks k join disk_types t on t.organization_id = k.organization_id and t.id = k.disk_type_id
    where k.organization_id = c.organization_id and k.cluster_id = c.id)`,
  created_at: `to_char(c.created_at, 'YYYY-MM-DD"T"HH24:MI:SS.US')`,
};

/** All of its fields as text, `{name, slug, …}`; the creator is the id of a user. */
export const CLUSTER_STATE = `jsonb_build_object(${CLUSTER_FIELDS.map((field) => `'${field}', ${FIELDS[field]}`).join(', ')})`;

/** What the state of a cluster `c` is made of. */
export const JOIN_OF_STATE = `join regions r on r.id = c.region_id join providers p on p.id = r.provider_id
  join machines m on m.id = c.machine_id`;
