import type { SessionSql, Sql } from './connect.ts';

export type RunOutcome = 'changed' | 'unchanged' | 'held' | 'failed' | 'superseded';

export interface RunCounts {
  readonly seen: number;
  readonly added: number;
  readonly changed: number;
  readonly retired: number;
  readonly rejected: number;
}

/** A run that has begun. Its fence is the highest of its source until the next run begins. */
export interface Run {
  readonly id: number;
  readonly sourceId: string;
  readonly fence: number;
}

/** Makes known which sources there are. One that is not configured any more keeps its data and is only not run. */
export async function registerSource(
  sql: Sql,
  source: { id: string; kind: 'catalogue' | 'clusters' | 'rates'; adapter: string },
): Promise<void> {
  await sql`
    insert into sources (id, kind, adapter) values (${source.id}, ${source.kind}, ${source.adapter})
    on conflict (id) do update set kind = excluded.kind, adapter = excluded.adapter
    where (sources.kind, sources.adapter) is distinct from (excluded.kind, excluded.adapter)`;
}

/** Raises the source's fence and records the run; a run that is still under way can write nothing from now on. */
export async function beginRun(sql: Sql, sourceId: string, slot: string | undefined): Promise<Run> {
  const [row] = await sql<{ id: string; fence: string }[]>`
    with raised as (update sources set fence = fence + 1 where id = ${sourceId} returning fence),
    stale as (
      update sync_runs set outcome = 'superseded', finished_at = now()
      where source_id = ${sourceId} and outcome = 'running'
    )
    insert into sync_runs (source_id, fence, slot)
    select ${sourceId}, fence, ${slot ?? null}::timestamptz from raised
    returning id, fence`;
  if (!row) throw new Error(`source ${sourceId} is not registered`);
  return { id: Number(row.id), sourceId, fence: Number(row.fence) };
}

/** Locks the source for the rest of the transaction. False when a later run has begun: then nothing may be written. */
export async function holdsFence(sql: SessionSql, run: Run): Promise<boolean> {
  const [row] = await sql<
    { fence: string }[]
  >`select fence from sources where id = ${run.sourceId} for update`;
  return Number(row?.fence) === run.fence;
}

/** Records how the run ended, and for a good one that the source's data is verified as of `now`. */
export async function finishRun(
  sql: Sql | SessionSql,
  run: Run,
  outcome: RunOutcome,
  counts: RunCounts | undefined,
  now: string,
  error?: string,
): Promise<void> {
  await sql`
    update sync_runs
    set finished_at = clock_timestamp(), outcome = ${outcome}, seen = ${counts?.seen ?? null},
        added = ${counts?.added ?? null}, changed = ${counts?.changed ?? null}, retired = ${counts?.retired ?? null},
        rejected = ${counts?.rejected ?? null}, error = ${error ?? null}
    where id = ${run.id} and outcome = 'running'`;
  if (outcome !== 'changed' && outcome !== 'unchanged') return;
  // The list of providers is as old as its oldest source: the first good run of one changes what it hangs on.
  await sql`
    with verified as (
      update sources s set verified_at = ${now}::timestamptz from sources before
      where s.id = ${run.sourceId} and before.id = s.id
      returning before.verified_at is null and s.kind = 'catalogue' as first
    )
    update lineage set providers_version = providers_version + 1 where exists (select from verified where first)`;
}

/** Whether one of these sources has not ended a single run yet, good or bad. */
export async function anyNeverRan(sql: Sql, sourceIds: readonly string[]): Promise<boolean> {
  const [row] = await sql<{ waiting: boolean }[]>`
    select exists (
      select from unnest(${[...sourceIds]}::text[]) w (id)
      where not exists (select from sync_runs r where r.source_id = w.id and r.finished_at is not null)) as waiting`;
  return row?.waiting ?? false;
}
