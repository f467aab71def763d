import type { ConnectionDatabase } from '../../db/connection/connect.ts';
import { pgTable, sql } from '../../db/connection/drizzle.ts';
import { insertInto } from '../../db/connection/statements.ts';
import { CLUSTER_STATE, JOIN_OF_STATE } from '../../db/runs/stored-changes.ts';
import { clusterChanges, clusters } from '../../db/schema.ts';
import type { ChangedBy } from '../runs/run.ts';
import { clusterDiff as d, clusterMissing as missing } from './match.ts';

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
