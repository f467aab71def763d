/** The steps of clusters: stage.ts copies what the adapter reads, match.ts finds the differences, store.ts and log.ts write them. */
import { notRetired } from '../../db/connection/statements.ts';
import { approvedRows } from '../../db/quarantine.ts';
import { clusters } from '../../db/schema.ts';
import type { ReportedCluster } from '../../domain/cluster.ts';
import { SAMPLE_ROWS } from '../../domain/held-sample.ts';
import { boundedRejected, groupReasons } from '../../domain/rejected-rows.ts';
import { COMPLETE } from '../../domain/run.ts';
import type { ClusterItem } from '../../sources/source.ts';
import type { Pricing } from '../currency.ts';
import { emptyGuard, type Guard, type GuardLimits, runsUntilRetired, shareGuard } from '../guards.ts';
import { patternOf } from '../pattern.ts';
import {
  type BatchKind,
  type Compared,
  type Previewed,
  type PreviewOptions,
  type Progress,
  previewBatch,
  type SyncOptions,
  type SyncResult,
  syncBatch,
} from '../pipeline.ts';
import { countRows } from './batch-facts.ts';
import { holdClusters, saveClusters } from './held-items.ts';
import { type ClusterDiff, matchClusters, rejectUnusable, setRemovalAside } from './match.ts';
import { type ClusterPreview, clusterPreview, sampleOfClusters } from './preview.ts';
import { assignSlugs } from './slugs.ts';
import { type SavedCluster, type StagedClusters, stageClusters } from './stage.ts';
import { resolveReferences, setSlugs, slugBatches, writeClusters } from './store.ts';

interface ClusterBatch {
  readonly items: AsyncIterable<ClusterItem<ReportedCluster> | SavedCluster>;
  readonly pricing: Pricing;
  readonly limits: GuardLimits;
  /** True if the source confirms that missing clusters are deleted. They are then retired at once, if no guard breaks. */
  readonly missingIsDeleted?: boolean;
  readonly progress?: Progress;
}

interface ComparedClusters extends Compared {
  readonly diff: ClusterDiff;
}

/**
 * Stores the clusters, or holds the batch. If only the guard `removed` breaks, it holds the removal and stores the rest.
 * @throws SourceError if the source cannot be read completely
 */
export function syncClusters(sync: SyncOptions & ClusterBatch): Promise<SyncResult> {
  return syncBatch(clusterKind(sync.run.sourceId, sync, sync.approved ?? false), sync);
}

export interface PreviewedClusters extends Previewed<ClusterDiff>, ClusterPreview {
  readonly kind: 'clusters';
}

export async function previewClusters(
  options: PreviewOptions,
  batch: ClusterBatch,
): Promise<PreviewedClusters> {
  return {
    kind: 'clusters',
    ...(await previewBatch(clusterKind(options.sourceId, batch, true), options, clusterPreview)),
  };
}

function clusterKind(
  sourceId: string,
  { items, pricing, limits, missingIsDeleted, progress }: ClusterBatch,
  approved: boolean,
): BatchKind<StagedClusters, ComparedClusters> {
  const untilRetired = missingIsDeleted ? 1 : runsUntilRetired(approved);
  return {
    pricing,
    stage: (db) => stageClusters(db, items, pricing, progress),
    confirm: (db) => db.$count(clusters, notRetired(clusters, sourceId)),
    // The comparison finds the changed organizations; they are locked after it.
    async lock() {},

    async compare(db, staged) {
      const unusable = await rejectUnusable(db, staged.namesMachines);
      const rejected = boundedRejected([...staged.rejected, ...unusable.rejected]);
      const diff = await matchClusters(db, sourceId, rejected);
      const rejectedCount = staged.seen - unusable.usable;
      // Neither clusters that wait for a setting nor those that an operator approved are a sign of a broken feed.
      const approvedCount = (await approvedRows(db, sourceId, rejected)).size;
      const uncounted = staged.waiting + unusable.waiting + approvedCount;
      const guards = clusterGuards(
        { ...diff, seen: staged.seen - uncounted, rejected: rejectedCount - uncounted },
        limits,
      );
      const counts = { seen: staged.seen, rejected: rejectedCount };
      return { diff, counts, rejected, guards, withdrawn: [], completeness: COMPLETE };
    },

    async hold(db, run, compared, { broken, readAt }) {
      const { rejected } = compared;
      // The whole batch is held: its approval removes the missing clusters.
      const worst = sampleOfClusters(await clusterPreview(db, SAMPLE_ROWS));
      const findPattern = async () =>
        patternOf({
          owner: sourceId,
          known: compared.diff.known,
          seen: compared.counts.seen,
          broken,
          rejected: groupReasons(rejected),
          ...(await countRows(db, sourceId)),
        });
      await holdClusters(db, run, { broken, findPattern, readAt, rejected, worst });
      if (broken.some(({ guard }) => guard !== 'removed')) return undefined;
      return { ...compared, diff: { ...compared.diff, ...(await setRemovalAside(db)) } };
    },

    saveBefore: (db, decision) => saveClusters(db, decision, sourceId),

    async write(db, { diff: { added, changed: differing } }, { runId, now }) {
      const changed = differing + (await resolveReferences(db, { sourceId, now }));
      for await (const { rows, taken } of slugBatches(db, untilRetired))
        await setSlugs(db, assignSlugs(rows, taken));
      const retired = await writeClusters(db, { runId, sourceId, now }, untilRetired);
      return { changed: added + changed + retired > 0, counts: { added, changed, retired }, unread: [] };
    },
  };
}

/** An organization may add a thousand clusters at once, so no guard counts new ones. */
function clusterGuards(
  { known, missing, seen, rejected }: ClusterDiff & { readonly seen: number; readonly rejected: number },
  limits: GuardLimits,
): Guard[] {
  const share = (guard: Guard['guard'], count: number, of: number, limit: number, what: string) =>
    shareGuard(guard, { count, of, limit, what }, limits);
  return [
    // An empty list is suspicious only after a list with clusters.
    emptyGuard(seen === rejected && known > 0),
    share('removed', missing, known, limits.removedShare, 'known rows are not reported any more'),
    share('rejected', rejected, seen, limits.rejectedShare, 'rows cannot be used'),
  ];
}
