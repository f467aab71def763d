/** Stored changes of machines and clusters by runs: the state of a cluster as SQL, its retirement, and their deletion. */
import { CLUSTER_FIELDS, type ClusterField } from '../../domain/run.ts';
import type { Database } from '../connection/connect.ts';
import { type SQL, sql } from '../connection/drizzle.ts';
import { insertInto, nameOf } from '../connection/statements.ts';
import { clusterChanges, clusters, lineage, machineChanges, syncRuns } from '../schema.ts';

const FIELDS: Readonly<Record<ClusterField, string>> = {
  name: 'c.name',
  slug: 'c.slug',
  provider: 'p.name',
  region: 'r.code',
  machine: 'm.name',
  engine: 'c.engine',
  version: 'c.version',
  end_of_life: 'c.end_of_life::text',
  status: 'c.status',
  shards: 'c.shards::text',
  replicas: 'c.replicas::text',
  user: 'c.user_id::text',
  disks: `(
    select string_agg(k.size || ' ' || k.unit || ' ' || t.name || ' at ' || trim_scale(t.source_amount) || ' ' ||
      t.source_currency || case t.unit when 'Binary' then ' per GiB and ' else ' per GB and ' end || t.source_per ||
      case when k.autoscaling then ', autoscaling' else '' end,
      '; ' order by k.position)
    from disks k join disk_types t on t.organization_id = k.organization_id and t.id = k.disk_type_id
    where k.organization_id = c.organization_id and k.cluster_id = c.id)`,
  created_at: `to_char(c.created_at, 'YYYY-MM-DD"T"HH24:MI:SS.US')`,
};

/** SQL for all fields of a cluster as text, `{name, slug, …}`. The creator is a user id. */
export const CLUSTER_STATE = `jsonb_build_object(${CLUSTER_FIELDS.map((field) => `'${field}', ${FIELDS[field]}`).join(', ')})`;

export const JOIN_OF_STATE = `join regions r on r.id = c.region_id join providers p on p.id = r.provider_id
  join machines m on m.id = c.machine_id`;

/** Deletes older changes, but not the runs. */
export async function pruneChanges(db: Database, days: number): Promise<void> {
  const { changedAt, namings, rates } = syncRuns;
  const { changesSince } = lineage;
  await db.execute(sql`
    with old as (
      select now() - ${days} * interval '1 day' as until
    ), of_machines as (
      delete from ${machineChanges} using old where ${machineChanges.changedAt} < old.until returning 1
    ), of_clusters as (
      delete from ${clusterChanges} using old where ${clusterChanges.changedAt} < old.until returning 1
    ), of_runs as (
      update ${syncRuns} set ${nameOf(changedAt)} = null, ${nameOf(namings)} = null, ${nameOf(rates)} = null from old
      where ${changedAt} < old.until returning 1
    )
    update ${lineage} set ${nameOf(changesSince)} = greatest(${changesSince}, old.until) from old
    where exists (select from of_machines) or exists (select from of_clusters) or exists (select from of_runs)`);
}

/** Records clusters that an operator retires. Call it before they are retired. @param condition on clusters `c` */
export async function recordRetiredClusters(db: Database, now: string | SQL, condition: SQL): Promise<void> {
  await db.execute(sql`
    ${insertInto(clusterChanges, {
      runId: null,
      sourceId: sql`c.source_id`,
      changedAt: now,
      organizationId: sql`c.organization_id`,
      clusterId: sql`c.id`,
      change: 'retired',
      before: sql.raw(CLUSTER_STATE),
    })}
    from ${clusters} c ${sql.raw(JOIN_OF_STATE)} where c.retired_at is null and ${condition}
    order by c.organization_id, c.source_key collate "C"`);
}
