/** What watched sources leave in the list of runs, which states that come by the second must not fill. */

import type { Database } from '../connect.ts';
import { and, eq, inArray, isNull, lt, max, sql } from '../drizzle.ts';
import { heldBatches, sources, syncRuns } from '../schema.ts';
import { insertInto } from '../statements.ts';

/** Runs of each source that are kept; older ones go, but for those whose changes or whose held batch are kept. */
const RUNS_KEPT = 2000;

/** Records that a source could not be watched. It raises no fence: a run that is under way goes on. */
export async function recordFailedWatch(db: Database, sourceId: string, error: string): Promise<void> {
  const finishedAt = sql`clock_timestamp()`;
  const { id, fence } = sources;
  await db.execute(sql`
    ${insertInto(syncRuns, { sourceId: id, fence, finishedAt, outcome: 'failed', error, cause: 'watch' })}
    from ${sources} where ${id} = ${sourceId}`);
}

/** After a state that changed nothing: of all that changed nothing and no schedule and no person asked for, only the last run stays. */
export async function foldUnchanged(db: Database, sourceId: string): Promise<void> {
  const ofSource = eq(syncRuns.sourceId, sourceId);
  const latest = db
    .select({ id: max(syncRuns.id) })
    .from(syncRuns)
    .where(ofSource);
  await db
    .delete(syncRuns)
    .where(
      and(
        ofSource,
        isNull(syncRuns.slot),
        sql`${syncRuns.cause} is distinct from 'hand'`,
        inArray(syncRuns.outcome, ['unchanged', 'superseded']),
        sql`${syncRuns.id} < (${latest})`,
      ),
    );
}

/** Forgets all but the newest runs of each source, and those whose changes are kept, and held batches that a younger one superseded a week ago. */
export async function pruneRuns(db: Database): Promise<void> {
  await db
    .delete(heldBatches)
    .where(
      and(eq(heldBatches.status, 'superseded'), lt(heldBatches.decidedAt, sql`now() - interval '7 days'`)),
    );
  await db.execute(sql`
    delete from ${syncRuns} using (
      select ${sources.id}, (
        select ${syncRuns.id} from ${syncRuns} where ${syncRuns.sourceId} = ${sources.id}
        order by ${syncRuns.id} desc offset ${RUNS_KEPT - 1} limit 1) as oldest
      from ${sources}
    ) kept
    where ${syncRuns.sourceId} = kept.id and ${syncRuns.id} < kept.oldest and ${syncRuns.changedAt} is null
      and not exists (select from ${heldBatches} where ${heldBatches.runId} = ${syncRuns.id})`);
}
