/** Decides, from counts alone, whether a batch may reach readers or has to wait for a person. */

export interface GuardLimits {
  /**
   * Share of the known machines (or clusters) that one run may take from readers: not reported, or excluded now for
   * another reason than stock.
   */
  readonly removedShare: number;
  /** New machines as a share of the known ones; the first run of a source is free. */
  readonly addedShare: number;
  readonly repricedShare: number;
  /** Factor by which a published price may rise or fall. Beyond it few prices are quarantined; many hold the batch. */
  readonly priceRatio: number;
  /** Share of the known machines whose cpu or memory may change: they hardly ever do, but a unit may be mistaken. */
  readonly reshapedShare: number;
  /** Share of the rows seen that may be there more than once. They are quarantined; more hold the batch. */
  readonly duplicateShare: number;
  /** Share of what the upstream announced that may not have arrived. */
  readonly incompleteShare: number;
  /** Share of the rows seen that may be unusable, and share of them whose price may go beyond `priceRatio`. */
  readonly rejectedShare: number;
  /**
   * Up to this many rows a share says nothing: so many may always go, come, change or be rejected, and so many types,
   * in however many regions, may be there more than once or jump in price.
   */
  readonly smallCount: number;
  /** Per hour, in the published currency; a row above it is rejected. */
  readonly maxHourlyPrice: number;
}

/** Wide enough for a provider's ordinary day, narrow enough for the incidents that others have told of. */
export const DEFAULT_GUARD_LIMITS: GuardLimits = {
  removedShare: 0.2,
  addedShare: 1,
  repricedShare: 0.5,
  priceRatio: 5,
  reshapedShare: 0.2,
  duplicateShare: 0.1,
  incompleteShare: 0,
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
  /** Machines whose published price would change by more than the limit, and how many types these are. */
  readonly jumps: number;
  readonly jumpTypes: number;
  /** Published until now and excluded by this batch. A machine that is sold out is not gone, and does not count. */
  readonly withdrawn: number;
  readonly reshaped: number;
  /** The factor by which the memory of most of the reshaped machines changes; 1 when there is none. */
  readonly memoryFactor: number;
  /** Rows that were there more than once, and how many types these are. */
  readonly duplicates: number;
  readonly duplicateTypes: number;
  /** Of the rejected rows, those whose price was not taken. */
  readonly setAside: number;
  readonly totals: readonly { readonly of: string; readonly advertised: number; readonly fetched: number }[];
}

/** One guard that a batch broke, fit for an operator's eyes. */
export interface BrokenGuard {
  readonly guard:
    | 'empty'
    | 'incomplete'
    | 'removed'
    | 'added'
    | 'repriced'
    | 'price_ratio'
    | 'unit_flip'
    | 'duplicates'
    | 'rejected';
  readonly found: number;
  readonly limit: number;
  readonly detail: string;
}

/** `27 %, limit 10 %` */
function shares(found: number, limit: number): string {
  const percent = (share: number) => `${Number((share * 100).toPrecision(share < 0.1 ? 1 : 2))} %`;
  return `${percent(found)}, limit ${percent(limit)}`;
}

/** Every guard that the batch breaks; none means that it may be stored. */
export function brokenGuards(batch: GuardInput, limits: GuardLimits): BrokenGuard[] {
  const broken: BrokenGuard[] = [];
  const share = (guard: BrokenGuard['guard'], count: number, of: number, limit: number, detail: string) => {
    if (count <= limits.smallCount || of === 0 || count / of <= limit) return;
    const found = count / of;
    broken.push({ guard, found, limit, detail: `${count} of ${of} ${detail} (${shares(found, limit)})` });
  };
  if (batch.seen === batch.rejected) {
    broken.push({
      guard: 'empty',
      found: 0,
      limit: 1,
      detail: 'not one usable row; an empty answer is no catalogue',
    });
  }
  for (const { of, advertised, fetched } of batch.totals) {
    const gap = Math.abs(advertised - fetched);
    if (gap <= advertised * limits.incompleteShare) continue;
    const found = gap / Math.max(advertised, 1);
    const limit = limits.incompleteShare;
    const detail = `the upstream announced ${advertised} ${of} and sent ${fetched} (${shares(found, limit)})`;
    broken.push({ guard: 'incomplete', found, limit, detail });
  }
  share(
    'removed',
    batch.missing + batch.withdrawn,
    batch.known,
    limits.removedShare,
    batch.withdrawn === 0
      ? 'known rows are not reported any more'
      : `known rows would go: ${batch.missing} are not reported any more, ${batch.withdrawn} would be excluded`,
  );
  share(
    'added',
    batch.added,
    batch.known,
    limits.addedShare,
    'rows would be new, counted against the known ones',
  );
  share('repriced', batch.repriced, batch.known, limits.repricedShare, 'known rows have another price');
  share(
    'unit_flip',
    batch.reshaped,
    batch.known,
    limits.reshapedShare,
    `known machines have another size${batch.memoryFactor === 1 ? '' : `: memory × ${batch.memoryFactor.toPrecision(4)}`}`,
  );
  if (batch.duplicateTypes > limits.smallCount) {
    share('duplicates', batch.duplicates, batch.seen, limits.duplicateShare, 'rows are there more than once');
  }
  // Rows that another guard judges are not counted twice.
  const unusable = batch.rejected - batch.duplicates - batch.setAside;
  share('rejected', unusable, batch.seen, limits.rejectedShare, 'rows cannot be used');
  if (!isFew({ rows: batch.jumps, types: batch.jumpTypes }, batch.seen, limits)) {
    broken.push({
      guard: 'price_ratio',
      found: batch.priceRatio,
      limit: limits.priceRatio,
      detail: `${batch.jumps} of ${batch.seen} rows would change a published price by more than a factor of ${limits.priceRatio}, one by ${batch.priceRatio.toPrecision(3)}`,
    });
  }
  return broken;
}

/**
 * Whether rows that are wrong by themselves are so few that they are quarantined while the others are stored. One type
 * is sold in many regions: a mistake in it is one mistake.
 */
export function isFew(
  { rows, types }: { readonly rows: number; readonly types: number },
  seen: number,
  { smallCount, rejectedShare }: Pick<GuardLimits, 'smallCount' | 'rejectedShare'>,
): boolean {
  return types <= smallCount || rows / seen <= rejectedShare;
}

/**
 * In how many good runs in a row a machine or cluster has to be missed before it is retired. An operator who approves
 * a batch has seen what is gone.
 */
export function runsUntilRetired(approved: boolean | undefined): number {
  return approved ? 1 : 3;
}
