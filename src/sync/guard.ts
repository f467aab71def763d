/** Decides, from counts alone, whether a batch may reach readers or has to wait for a person. */

export interface GuardLimits {
  /** Share of the known machines (or clusters) that one run may lose. */
  readonly removedShare: number;
  /** New machines as a share of the known ones; the first run of a source is free. */
  readonly addedShare: number;
  readonly repricedShare: number;
  /** Factor by which any published price may rise or fall. */
  readonly priceRatio: number;
  /** Share of the rows seen that may be unusable. */
  readonly rejectedShare: number;
  /** Below this many rows a share says nothing: so many may always go, come, change or be rejected. */
  readonly smallCount: number;
  /** Per hour, in the published currency; a row above it is rejected. */
  readonly maxHourlyPrice: number;
}

/** Wide enough for a provider's ordinary day, narrow enough for the incidents that others have told of. */
export const DEFAULT_LIMITS: GuardLimits = {
  removedShare: 0.2,
  addedShare: 1,
  repricedShare: 0.5,
  priceRatio: 5,
  rejectedShare: 0.1,
  smallCount: 2,
  maxHourlyPrice: 1000,
};

export interface GuardInput {
  readonly known: number;
  readonly seen: number;
  readonly added: number;
  readonly repriced: number;
  readonly missing: number;
  readonly rejected: number;
  readonly priceRatio: number;
}

/** One guard that a batch broke, fit for an operator's eyes. */
export interface BrokenGuard {
  readonly guard: 'empty' | 'removed' | 'added' | 'repriced' | 'price_ratio' | 'rejected';
  readonly found: number;
  readonly limit: number;
  readonly detail: string;
}

/** Every guard that the batch breaks; none means that it may be stored. */
export function brokenGuards(batch: GuardInput, limits: GuardLimits): BrokenGuard[] {
  const broken: BrokenGuard[] = [];
  const share = (guard: BrokenGuard['guard'], count: number, of: number, limit: number, detail: string) => {
    if (count <= limits.smallCount || of === 0 || count / of <= limit) return;
    broken.push({ guard, found: count / of, limit, detail: `${count} of ${of} ${detail}` });
  };
  if (batch.seen === batch.rejected) {
    broken.push({
      guard: 'empty',
      found: 0,
      limit: 1,
      detail: 'not one usable row; an empty answer is no catalogue',
    });
  }
  share('removed', batch.missing, batch.known, limits.removedShare, 'known rows are not reported any more');
  share(
    'added',
    batch.added,
    batch.known,
    limits.addedShare,
    'rows would be new, counted against the known ones',
  );
  share('repriced', batch.repriced, batch.known, limits.repricedShare, 'known rows have another price');
  share('rejected', batch.rejected, batch.seen, limits.rejectedShare, 'rows cannot be used');
  if (batch.priceRatio > limits.priceRatio) {
    broken.push({
      guard: 'price_ratio',
      found: batch.priceRatio,
      limit: limits.priceRatio,
      detail: `a published price would change by a factor of ${batch.priceRatio.toPrecision(3)}`,
    });
  }
  return broken;
}

/**
 * In how many good runs in a row a machine or cluster has to be missed before it is retired. An operator who approves
 * a batch has seen what is gone.
 */
export function runsUntilRetired(approved: boolean | undefined): number {
  return approved ? 1 : 3;
}
