import type { SessionSql, Sql } from '../client.ts';

export type RunOutcome = 'changed' | 'unchanged' | 'held' | 'failed' | 'superseded';

/** What is recorded of a run whose process ended before it was done. */
export const INTERRUPTED = 'interrupted: the process that ran it ended before it was done';

export interface RunCounts {
  readonly seen: number;
  readonly added: number;
  readonly changed: number;
  readonly retired: number;
  readonly rejected: number;
  /** Machines that readers saw until then and that the run excluded. */
  readonly withdrawn: number;
}

/** Of a run that has stored nothing. */
export const NO_COUNTS: RunCounts = { seen: 0, added: 0, changed: 0, retired: 0, rejected: 0, withdrawn: 0 };

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

/**
 * Raises the source's fence and records the run; a run that is still under way can write nothing from now on.
 * @param marked marks the run as under way by a lock of this session, see store/live-runs.ts
 */
export async function beginRun(
  sql: Sql,
  sourceId: string,
  slot: string | undefined,
  { marked = false }: { readonly marked?: boolean } = {},
): Promise<Run> {
  const [row] = await sql<{ id: string; fence: string }[]>`
    with raised as (update sources set fence = fence + 1 where id = ${sourceId} returning fence),
    stale as (
      update sync_runs r set finished_at = now(),
        outcome = case when ${isUnderWay(sql)} then 'superseded' else 'interrupted' end,
        error = case when ${isUnderWay(sql)} then null else ${INTERRUPTED} end
      where source_id = ${sourceId} and outcome = 'running'
    ), begun as (
      insert into sync_runs (source_id, fence, slot)
      select ${sourceId}, fence, ${slot ?? null}::timestamptz from raised
      returning id, fence
    )
    select id, fence,
      case when ${marked} then pg_try_advisory_lock_shared(hashtextextended('fleetbook run ' || id, 0)) end
    from begun`;
  if (!row) throw new Error(`source ${sourceId} is not registered`);
  return { id: Number(row.id), sourceId, fence: Number(row.fence) };
}

/** Of a run `r` that is recorded as running: whether some process has marked it as under way, see store/live-runs.ts. */
export function isUnderWay(sql: Sql) {
  return sql`exists (
    select from pg_locks l
    where l.locktype = 'advisory' and l.objsubid = 1 and l.granted
      and l.database = (select d.oid from pg_database d where d.datname = current_database())
      and (l.classid::bigint << 32 | l.objid::bigint) = hashtextextended('fleetbook run ' || r.id, 0))`;
}

/** Locks the source for the rest of the transaction. False when a later run has begun: then nothing may be written. */
export async function holdsFence(sql: SessionSql, run: Run): Promise<boolean> {
  const [row] = await sql<
    { fence: string }[]
  >`select fence from sources where id = ${run.sourceId} for update`;
  return Number(row?.fence) === run.fence;
}

/**
 * Records how the run ended, and for a good one that the source is as old as its reading, `readAt`: that moves forward
 * only. Regions are stamped beside it, see freshness.ts.
 */
export async function finishRun(
  sql: Sql | SessionSql,
  run: Run,
  outcome: RunOutcome,
  counts: RunCounts | undefined,
  readAt: string,
  error?: string,
): Promise<void> {
  await sql`
    update sync_runs
    set finished_at = clock_timestamp(), outcome = ${outcome}, seen = ${counts?.seen ?? null},
        added = ${counts?.added ?? null}, changed = ${counts?.changed ?? null}, retired = ${counts?.retired ?? null},
        rejected = ${counts?.rejected ?? null}, withdrawn = ${counts?.withdrawn ?? null}, error = ${error ?? null}
    where id = ${run.id} and outcome = 'running'`;
  if (outcome !== 'changed' && outcome !== 'unchanged') return;
  // The list of providers is as old as its oldest source: the first good run of one changes what it hangs on.
  await sql`
    with verified as (
      update sources s set verified_at = greatest(s.verified_at, ${readAt}::timestamptz), retired_at = null
      from sources before
      where s.id = ${run.sourceId} and before.id = s.id
      returning (before.verified_at is null or before.retired_at is not null) and s.kind = 'catalogue' as first
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
