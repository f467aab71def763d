import type { Database } from '../connect.ts';
import { sql } from '../drizzle.ts';
import { clusterChanges, lineage, machineChanges, syncRuns } from '../schema.ts';
import { nameOf } from '../statements.ts';

/**
 * Forgets what runs changed longer ago. The runs themselves go with the others of their age, see watch-runs.ts.
 * @param days how long changes are kept
 */
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
