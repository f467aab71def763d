import type { Store } from '../db/connect.ts';
import { countChanges, diffStaged, withdrawnMachines } from '../db/queries/catalogue-diff.ts';
import { lockProvider, writeMachines, writeRegions } from '../db/queries/catalogue-write.ts';
import {
  type BatchDecision,
  decide,
  heldReadAt,
  holdStaged,
  isOpen,
  supersedeHeld,
} from '../db/queries/held.ts';
import { setJumpsAside } from '../db/queries/price-jumps.ts';
import { writeQuarantine } from '../db/queries/quarantine.ts';
import { boundedRejected } from '../db/queries/rejected.ts';
import { finishRun, holdsFence, NO_COUNTS, type Run, type RunCounts } from '../db/queries/runs.ts';
import { recordUndo, restoreBefore, saveCatalogue } from '../db/queries/undo.ts';
import { stageStored, storedRegions } from '../db/queries/validators.ts';
import type { CatalogueItem } from '../sources/source.ts';
import { checkCurrency } from './currency.ts';
import { endUnmodified, isUnmodified, keepVersions, unmodifiedRegions } from './documents.ts';
import { earlier, stampRead } from './freshness.ts';
import { brokenGuards, type GuardLimits, isFew, runsUntilRetired } from './guard.ts';
import { nothingStored, type SyncResult } from './result.ts';
import { createStaging, highestPrice, type Pricing, type Progress, stageCatalogue } from './stage.ts';

export interface CatalogueSync {
  readonly store: Store;
  readonly run: Run;
  readonly provider: { readonly id: number; readonly name: string };
  readonly items: AsyncIterable<CatalogueItem>;
  readonly pricing: Pricing;
  readonly limits: GuardLimits;
  /** Under which the versions of the documents that were read are kept, see store/validators.ts; absent: none are. */
  readonly reading?: string;
  /** An operator has approved the batch: it is diffed again and stored whatever the guards say. */
  readonly approved?: boolean;
  /** What is stored, then: nothing of a batch that somebody else has decided about, or a run superseded. */
  readonly decision?: BatchDecision;
  readonly progress?: Progress;
  readonly now: () => Date;
}

/**
 * Stores one whole catalogue: fetch → stage → diff → guard → write, the last three in one transaction.
 *
 * Either all of a batch is stored or none of it; a failure on the way leaves the catalogue as it was.
 * @throws SourceError when the source cannot be read whole.
 */
export async function syncCatalogue(sync: CatalogueSync): Promise<SyncResult> {
  // Ending the session is the rollback: nothing that fails on the way leaves a trace, not even a lost connection.
  await using session = sync.store.session();
  const { sql } = session;
  await createStaging(sql);
  const began = sync.now().toISOString();
  const fetched = await stageCatalogue(sql, sync.items, sync.pricing, sync.progress);
  const now = sync.now().toISOString();
  const source = { id: sync.run.sourceId, provider: sync.provider };
  const ownTime = earlier(began, fetched.asOf.get(undefined));

  await sql`begin`;
  if (!(await holdsFence(sql, sync.run)) || !(await isOpen(sql, sync.decision))) {
    await sql`rollback`;
    await finishRun(sql, sync.run, 'superseded', undefined, ownTime);
    return nothingStored('superseded');
  }
  if (isUnmodified(fetched.documents)) return await endUnmodified(sql, sync.run, ownTime);
  await checkCurrency(sql, sync.pricing);
  const { decision } = sync;
  const readAt = decision === undefined ? ownTime : await heldReadAt(sql, decision.batchId);
  await lockProvider(sql, source);
  const unmodified = unmodifiedRegions(fetched.documents);
  const stored = await stageStored(sql, source.id, unmodified);
  const regions = new Map([
    ...(await storedRegions(sql, source.provider.id, unmodified)),
    ...fetched.regions,
  ]);
  const seen = fetched.seen + stored;
  const maxPrice = highestPrice(sync.limits.maxHourlyPrice, sync.pricing);
  const compared = await diffStaged(
    sql,
    { id: source.id, providerId: source.provider.id },
    {
      regions: [...regions.keys()],
      rows: fetched.offers + stored,
      rejected: fetched.rejected,
      maxPrice,
      maxRatio: sync.limits.priceRatio,
    },
  );
  // An operator who approves a batch takes its prices as they are.
  const fewJump =
    !sync.approved && isFew({ rows: compared.diff.jumps, types: compared.diff.jumpTypes }, seen, sync.limits);
  const jumped = fewJump ? await setJumpsAside(sql, source.id) : { count: 0, rejected: [] };
  const diff = jumped.count > 0 ? await countChanges(sql, source.id) : compared.diff;
  const rejected = boundedRejected([...compared.rejected, ...jumped.rejected]);
  const rejectedCount = seen - compared.usable + jumped.count;
  // What an operator has yet to say is no sign of a broken feed: such rows wait in quarantine.
  const { totals, waiting } = fetched;
  const judged = { seen: seen - waiting, rejected: rejectedCount - waiting };
  const { duplicates, duplicateTypes } = compared;
  const broken = brokenGuards(
    { ...diff, ...judged, totals, duplicates, duplicateTypes, setAside: jumped.count },
    sync.limits,
  );
  const counts: RunCounts = {
    ...NO_COUNTS,
    seen,
    added: diff.added,
    changed: diff.changed,
    rejected: rejectedCount,
    withdrawn: diff.withdrawn,
  };
  const told = {
    broken,
    rejected,
    withdrawn: diff.withdrawn > 0 ? await withdrawnMachines(sql) : [],
    regions: fetched.regions.size,
  };
  if (broken.length > 0 && !sync.approved) {
    // The staged rows hold the prices that jump as well: whoever approves the batch approves them.
    await holdStaged(sql, sync.run, broken, {
      readAt,
      rejected: compared.rejected,
      regions,
      asOf: fetched.asOf,
    });
    const counts = { ...NO_COUNTS, seen, rejected: rejectedCount };
    await finishRun(sql, sync.run, 'held', counts, readAt, broken.map((guard) => guard.detail).join('; '));
    await sql`commit`;
    return { outcome: 'held', counts, ...told };
  }
  if (decision?.kind === 'approve') await saveCatalogue(sql, decision, source);
  const renamed = await writeRegions(sql, source, regions);
  const retired = await writeMachines(sql, source, renamed, now, runsUntilRetired(sync.approved));
  if (decision?.kind === 'undo') await restoreBefore(sql, decision, source.id);
  else {
    const unread = await stampRead(sql, source, { ...fetched, regions, rejected, readAt });
    await writeQuarantine(sql, source.id, [...rejected, ...unread]);
  }
  await keepVersions(sql, source.id, sync.reading, fetched.documents, rejected);
  if (decision?.kind === 'approve') await decide(sql, decision.batchId, 'approved', decision.decider);
  else if (!sync.approved) await supersedeHeld(sql, source.id);
  const outcome = renamed.changed || diff.added + diff.changed + retired > 0 ? 'changed' : 'unchanged';
  await finishRun(sql, sync.run, outcome, { ...counts, retired }, readAt);
  if (decision?.kind === 'undo') await recordUndo(sql, decision);
  await sql`commit`;
  return { outcome, counts: { ...counts, retired }, ...told };
}
