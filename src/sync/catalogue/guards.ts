/** The guards of a catalogue. Those of its prices and of its plans of databases are in check-prices.ts and database-plans.ts. */
import { emptyGuard, type Guard, type GuardLimits, shareGuard, shares } from '../guards.ts';
import type { CatalogueDiff } from './match.ts';

/**
 * `withdrawn` are published machines that this batch excludes, without sold-out ones. `memoryFactor` is the most frequent factor of the
 * reshaped machines' memory; 1 if none was reshaped.
 */
export interface CatalogueMeasures extends Omit<CatalogueDiff, 'changed' | 'soldOut'> {
  readonly seen: number;
  readonly rejected: number;
  /** Repeated rows, and the number of their types. */
  readonly duplicates: number;
  readonly duplicateTypes: number;
  /** Known machines with terms. */
  readonly knownTerms: number;
  /** Rows that were rejected for their price jump. */
  readonly setAside: number;
  /** Usable plans of managed databases. */
  readonly plans: number;
  readonly totals: readonly Total[];
}

/** Rows that the upstream announced and sent. */
interface Total {
  readonly of: string;
  readonly advertised: number;
  readonly fetched: number;
}

/** Whether a batch has plans of databases alone. A source that has had machines must not lose them, whatever plans it states. */
export function hasPlansAlone(
  batch: Pick<CatalogueMeasures, 'known' | 'seen' | 'rejected' | 'plans'>,
): boolean {
  return batch.known === 0 && batch.seen === batch.rejected && batch.plans > 0;
}

export function catalogueGuards(batch: CatalogueMeasures, limits: GuardLimits): Guard[] {
  const { known, seen, missing, withdrawn, duplicates } = batch;
  const hasOnlyPlans = hasPlansAlone(batch);
  const share = (guard: Guard['guard'], count: number, of: number, limit: number, what: string) =>
    shareGuard(guard, { count, of, limit, what }, limits);
  const removed =
    withdrawn === 0
      ? 'known rows are not reported any more'
      : `known rows would go: ${missing} are not reported any more, ${withdrawn} would be excluded`;
  const lost = 'machines with prices of terms would lose one';
  const added = 'rows would be new, counted against the known ones';
  const memory = batch.memoryFactor === 1 ? '' : `: memory × ${batch.memoryFactor.toPrecision(4)}`;
  const reshaped = `known machines have another size${memory}`;
  // A mistake in few types repeats many rows. They are quarantined.
  const repeated = batch.duplicateTypes > limits.smallCount ? duplicates : 0;
  // Duplicates and price jumps have their own guards.
  const unusable = batch.rejected - duplicates - batch.setAside;
  const rows = hasOnlyPlans ? seen + batch.plans : seen;
  return [
    emptyGuard(seen === batch.rejected && !hasOnlyPlans),
    ...batch.totals.map((total) => incomplete(total, limits)),
    share('removed', missing + withdrawn, known, limits.removedShare, removed),
    share('removed', batch.termsLost, batch.knownTerms, limits.removedShare, lost),
    share('added', batch.added, known, limits.addedShare, added),
    share('repriced', batch.repriced, known, limits.repricedShare, 'known rows have another price'),
    share('unit_flip', batch.reshaped, known, limits.reshapedShare, reshaped),
    share('duplicates', repeated, seen, limits.duplicateShare, 'rows are there more than once'),
    share('rejected', unusable, rows, limits.rejectedShare, 'rows cannot be used'),
  ];
}

function incomplete({ of, advertised, fetched }: Total, { incompleteShare: limit }: GuardLimits): Guard {
  const gap = Math.abs(advertised - fetched);
  const found = gap / Math.max(advertised, 1);
  const detail = () =>
    `the upstream announced ${advertised} ${of} and sent ${fetched} (${shares(found, limit)})`;
  return { guard: 'incomplete', found, limit, isBroken: gap > advertised * limit, detail };
}
