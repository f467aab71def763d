import type { ConnectionDatabase, Database } from '../../connection/connect.ts';
import { pgTable, type SQL, sql } from '../../connection/drizzle.ts';
import { insertInto } from '../../connection/statements.ts';
import { CLUSTER_STATE, JOIN_OF_STATE } from '../../runs/stored-changes.ts';
import { clusterChanges, clusters } from '../../schema.ts';
import type { ChangedBy } from '../run.ts';
import { clusterDiff as d, clusterMissing as missing } from './diff.ts';

/** States of the diff's clusters before it is written, until the end of the transaction. */
const before = pgTable('cluster_states', (c) => ({
  clusterId: c.integer('cluster_id').notNull(),
  state: c.jsonb('state').notNull(),
}));

const STATE = sql.raw(CLUSTER_STATE);
const JOIN = sql.raw(JOIN_OF_STATE);

/** Stores the states that `recordChanges` compares with. Call it before the diff is written. */
export async function saveStates(db: ConnectionDatabase): Promise<void> {
  await db.execute(sql`
    create temporary table ${before} on commit drop as
    select c.id as cluster_id, ${STATE} as state from ${clusters} c ${JOIN}
    where c.id in (
      select ${d.clusterId} from ${d} where ${d.clusterId} is not null
      union all select ${missing.clusterId} from ${missing} where not ${missing.tolerated})`);
}

/** Records visible changes. A price that only an exchange rate changes is none. */
export async function recordChanges(
  db: ConnectionDatabase,
  { runId, sourceId, now }: ChangedBy,
): Promise<void> {
  const values = {
    runId,
    sourceId,
    changedAt: now,
    organizationId: sql`c.organization_id`,
    clusterId: sql`c.id`,
  };
  await db.execute(sql`
    ${insertInto(clusterChanges, {
      ...values,
      change: sql`case when ${d.wasRetired} then 'returned' else 'changed' end`,
      before: sql`case when ${d.wasRetired} then ${before.state} else differing.before end`,
      after: sql`case when ${d.wasRetired} then now.state else differing.after end`,
    })}
    from ${d} join ${before} on ${before.clusterId} = ${d.clusterId}
    join ${clusters} c on c.id = ${d.clusterId} ${JOIN}
    cross join lateral (select ${STATE} as state) now
    cross join lateral (
      select jsonb_object_agg(key, value) as before, jsonb_object_agg(key, now.state -> key) as after
      from jsonb_each(${before.state}) where value <> now.state -> key
    ) differing
    where not ${d.isNew} and (${d.wasRetired} or differing.before is not null)
    order by ${d.organizationId}, ${d.sourceKey} collate "C"`);
  await db.execute(sql`
    ${insertInto(clusterChanges, { ...values, change: 'retired', before: before.state })}
    from ${missing} join ${before} on ${before.clusterId} = ${missing.clusterId}
    join ${clusters} c on c.id = ${missing.clusterId}
    where not ${missing.tolerated} and c.retired_at is not null
    order by ${missing.organizationId}, ${missing.sourceKey} collate "C"`);
}

/** Records clusters that an operator retires. Call it before they are retired. @param condition on clusters `c` */
export async function recordRetired(db: Database, now: string | SQL, condition: SQL): Promise<void> {
  await db.execute(sql`
    ${insertInto(clusterChanges, {
      runId: null,
      sourceId: sql`c.source_id`,
      changedAt: now,
      organizationId: sql`c.organization_id`,
      clusterId: sql`c.id`,
      change: 'retired',
      before: STATE,
    })}
    from ${clusters} c ${JOIN} where c.retired_at is null and ${condition}
    order by c.organization_id, c.source_key collate "C"`);
}
