/** The steps of release cycles. There are a few hundred, so they are compared in memory. */
import type { ConnectionDatabase } from '../db/connection/connect.ts';
import { and, eq, inArray, sql } from '../db/connection/drizzle.ts';
import { readCycles } from '../db/lifecycles.ts';
import { lifecycles } from '../db/schema.ts';
import type { Cycle } from '../domain/lifecycle.ts';
import { boundedRejected, type RejectedKey } from '../domain/rejected-rows.ts';
import { COMPLETE } from '../domain/run.ts';
import type { CycleItem } from '../sources/source.ts';
import type { ClusterDiff } from './clusters/match.ts';
import {
  type ClusterPreview,
  type ClusterPreviewRow,
  type FieldChange,
  sampleOfClusters,
} from './clusters/preview.ts';
import { emptyGuard, type Guard, type GuardLimits, shareGuard } from './guards.ts';
import { NAMED } from './pattern.ts';
import {
  type BatchKind,
  type Compared,
  type Previewed,
  type PreviewOptions,
  previewBatch,
  type Staged,
  type SyncOptions,
  type SyncResult,
  syncBatch,
} from './pipeline.ts';
import { type HeldParts, holdBatch } from './runs/hold.ts';
import { saveItems } from './runs/undo.ts';

interface LifecycleBatch {
  readonly items: AsyncIterable<CycleItem>;
  readonly limits: GuardLimits;
}

interface StagedCycles extends Staged {
  readonly cycles: ReadonlyMap<string, Cycle>;
  readonly rejected: readonly RejectedKey[];
}

interface ComparedCycles extends Compared {
  readonly cycles: ReadonlyMap<string, Cycle>;
  readonly gone: readonly Cycle[];
  readonly changed: readonly { readonly before: Cycle; readonly after: Cycle }[];
  readonly added: readonly Cycle[];
  readonly diff: ClusterDiff;
}

/** Stores the cycles, or holds the batch. @throws SourceError if the source cannot be read completely */
export function syncLifecycles(sync: SyncOptions & LifecycleBatch): Promise<SyncResult> {
  return syncBatch(lifecycleKind(sync.run.sourceId, sync), sync);
}

/** Cycles have the shape of clusters: their engine is in the place of the organization. */
export interface PreviewedLifecycles extends Previewed<ClusterDiff>, ClusterPreview {
  readonly kind: 'lifecycles';
}

export async function previewLifecycles(
  options: PreviewOptions,
  batch: LifecycleBatch,
): Promise<PreviewedLifecycles> {
  const kind = lifecycleKind(options.sourceId, batch);
  const rows = async (_: ConnectionDatabase, limit: number | undefined, compared: ComparedCycles) =>
    previewOf(compared, limit);
  return { kind: 'lifecycles', ...(await previewBatch(kind, options, rows)) };
}

const keyOf = ({ engine, name }: Cycle) => `${engine} ${name}`;

function lifecycleKind(
  sourceId: string,
  { items, limits }: LifecycleBatch,
): BatchKind<StagedCycles, ComparedCycles> {
  return {
    stage: () => stageCycles(items),
    confirm: (db) => db.$count(lifecycles, eq(lifecycles.sourceId, sourceId)),
    async lock() {},
    compare: async (db, staged) => comparedCycles(staged, await readCycles(db, sourceId), limits),

    async hold(db, run, compared, { broken, readAt }) {
      const { cycles, rejected } = compared;
      const others = [...cycles.values()].map((cycle) => ({ kind: 'cycle', cycle }));
      const worst = sampleOfClusters(previewOf(compared, undefined));
      const staged = sql`select null::jsonb, 0 where false`;
      const findPattern = async () => patternOf(broken, compared);
      await holdBatch(db, run, { broken, findPattern, readAt, rejected, worst, others, staged, times: [] });
      return undefined;
    },

    saveBefore: (db, { batchId }) =>
      saveItems(
        db,
        batchId,
        sourceId,
        sql`
          select jsonb_build_object('kind', 'cycle', 'cycle', jsonb_build_object(
            'engine', l.engine, 'name', l.name, 'releasedOn', l.released_on, 'activeUntil', l.active_until,
            'endOfLife', l.end_of_life, 'hasEnded', l.has_ended, 'extendedUntil', l.extended_until, 'latest', l.latest))
          from ${lifecycles} l where l.source_id = ${sourceId}`,
      ),

    async write(db, { gone, changed, added }) {
      const written = [...changed.map(({ after }) => after), ...added];
      await deleteCycles(db, sourceId, [...gone, ...written]);
      for (let from = 0; from < written.length; from += ROWS_AT_ONCE) {
        const rows = written.slice(from, from + ROWS_AT_ONCE).map((cycle) => ({ ...cycle, sourceId }));
        await db.insert(lifecycles).values(rows);
      }
      const counts = { added: added.length, changed: changed.length, retired: gone.length };
      return { changed: gone.length + written.length > 0, counts, unread: [] };
    },
  };
}

/** A row has nine parameters, and a statement has at most 65,535. */
const ROWS_AT_ONCE = 1000;

async function deleteCycles(
  db: ConnectionDatabase,
  sourceId: string,
  cycles: readonly Cycle[],
): Promise<void> {
  for (const [engine, ofEngine] of Map.groupBy(cycles, (cycle) => cycle.engine)) {
    const names = ofEngine.map(({ name }) => name);
    await db
      .delete(lifecycles)
      .where(
        and(
          eq(lifecycles.sourceId, sourceId),
          eq(lifecycles.engine, engine),
          inArray(lifecycles.name, names),
        ),
      );
  }
}

async function stageCycles(items: AsyncIterable<CycleItem>): Promise<StagedCycles> {
  const cycles = new Map<string, Cycle>();
  const rejected: RejectedKey[] = [];
  let seen = 0;
  for await (const item of items) {
    seen += 1;
    if (item.kind === 'rejected') rejected.push(item);
    else if (cycles.has(keyOf(item.cycle)))
      rejected.push({
        key: keyOf(item.cycle),
        code: 'duplicate',
        reason: 'stated more than once; the first row counts',
      });
    else cycles.set(keyOf(item.cycle), item.cycle);
  }
  return { cycles, rejected: boundedRejected(rejected), seen, validators: [], dataTime: undefined };
}

/** A rejected row keeps its cycle. One without a name may be any cycle of its engine. */
function comparedCycles(
  { cycles, rejected, seen }: StagedCycles,
  stored: readonly Cycle[],
  limits: GuardLimits,
): ComparedCycles {
  const before = new Map(stored.map((cycle) => [keyOf(cycle), cycle]));
  const isRejected = (cycle: Cycle) =>
    rejected.some(({ key }) => key === keyOf(cycle) || key.startsWith(`${cycle.engine} release `));
  const gone = stored.filter((cycle) => !cycles.has(keyOf(cycle)) && !isRejected(cycle));
  const changed = [...cycles].flatMap(([key, after]) => {
    const old = before.get(key);
    return old !== undefined && changesOf(old, after).length > 0 ? [{ before: old, after }] : [];
  });
  const added = [...cycles.values()].filter((cycle) => !before.has(keyOf(cycle)));
  const moved = changed.filter(isMoved);
  const guards = lifecycleGuards(
    { known: stored.length, seen, gone: gone.length, rejected: rejected.length, moved: moved.length },
    limits,
  );
  return {
    ...{ cycles, gone, changed, added, rejected, guards },
    diff: {
      known: stored.length,
      added: added.length,
      changed: changed.length,
      missing: gone.length,
    },
    counts: { seen, rejected: rejected.length },
    withdrawn: [],
    completeness: COMPLETE,
  };
}

/** The first end of a cycle is no other end. */
const isMoved = ({ before, after }: ComparedCycles['changed'][number]): boolean =>
  before.endOfLife !== null && before.endOfLife !== after.endOfLife;

type Counts = Readonly<Record<'known' | 'seen' | 'gone' | 'rejected' | 'moved', number>>;

/** Releases appear at any time, so no guard counts new cycles. */
function lifecycleGuards({ known, seen, gone, rejected, moved }: Counts, limits: GuardLimits): Guard[] {
  const { removedShare, rejectedShare } = limits;
  const share = (guard: Guard['guard'], count: number, of: number, limit: number, what: string) =>
    shareGuard(guard, { count, of, limit, what }, limits);
  return [
    emptyGuard(seen === rejected && known > 0),
    share('removed', gone, known, removedShare, 'known rows are not reported any more'),
    share('redated', moved, known, removedShare, 'known rows have another end'),
    share('rejected', rejected, seen, rejectedShare, 'rows cannot be used'),
  ];
}

/** Returns what kind of change it is. The guards have the numbers. */
function patternOf(broken: HeldParts['broken'], { gone, changed }: ComparedCycles): string {
  if (broken.some(({ guard }) => guard === 'empty' || guard === 'rejected'))
    return 'unusable releases: a changed format?';
  const others = [...gone, ...changed.filter(isMoved).map(({ before }) => before)];
  const engines = [...new Set(others.map(({ engine }) => engine))].sort();
  const more = engines.length > NAMED ? ', …' : '';
  const question = engines.length === 1 ? 'a new policy, or a broken list?' : 'a broken list?';
  return `other releases of ${engines.slice(0, NAMED).join(', ')}${more}: ${question}`;
}

const FIELDS = [
  ['released_on', 'releasedOn'],
  ['active_until', 'activeUntil'],
  ['end_of_life', 'endOfLife'],
  ['has_ended', 'hasEnded'],
  ['extended_until', 'extendedUntil'],
  ['latest', 'latest'],
] as const satisfies readonly (readonly [string, keyof Cycle])[];

/** Returns the fields that differ; all known ones of a new or missing cycle. */
function changesOf(before: Cycle | undefined, after: Cycle | undefined): FieldChange[] {
  const textOf = (value: string | boolean | null | undefined) => (value == null ? null : String(value));
  return FIELDS.map(([field, key]) => ({
    field,
    before: textOf(before?.[key]),
    after: textOf(after?.[key]),
  })).filter((change) => change.before !== change.after);
}

function previewOf(
  { gone, changed, added }: Pick<ComparedCycles, 'gone' | 'changed' | 'added'>,
  limit: number | undefined,
): ClusterPreview {
  const rowOf = (change: ClusterPreviewRow['change'], before?: Cycle, after?: Cycle): ClusterPreviewRow => {
    const { engine, name } = (after ?? before) as Cycle;
    return { change, organization: engine, key: name, name, fields: changesOf(before, after) };
  };
  const rows = {
    gone: gone.map((cycle) => rowOf('gone', cycle)),
    changed: changed.map(({ before, after }) => rowOf('changed', before, after)),
    new: added.map((cycle) => rowOf('new', undefined, cycle)),
  };
  const all = Object.values(rows).flat();
  const totalsOf = (those: readonly ClusterPreviewRow[]) => ({
    gone: those.filter(({ change }) => change === 'gone').length,
    changed: those.filter(({ change }) => change === 'changed').length,
    new: those.filter(({ change }) => change === 'new').length,
  });
  return {
    rows: Object.values(rows).flatMap((each) => each.slice(0, limit)),
    organizations: [...Map.groupBy(all, ({ organization }) => organization)].map(([organization, those]) => ({
      organization,
      ...totalsOf(those),
    })),
    totals: totalsOf(all),
  };
}
