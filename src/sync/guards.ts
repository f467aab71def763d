/** Decides from counts whether a batch is published or waits for an operator. */
import type { CatalogueDiff } from './catalogue/diff.ts';

/** Wide enough for ordinary days of providers, narrow enough for known incidents. */
export const DEFAULT_GUARD_LIMITS = {
  /** Share of the known machines or clusters that may go: not reported, or excluded for another reason than stock. */
  removedShare: 0.2,
  /** New machines as a share of the known ones. The first run of a source has no limit. */
  addedShare: 1,
  repricedShare: 0.5,
  /** Factor by which a published price may rise or fall. A few larger changes are quarantined; many hold the batch. */
  priceRatio: 5,
  /** Share of the known machines whose cpu or memory may change. A large share indicates a wrong unit. */
  reshapedShare: 0.2,
  /** Share of the rows that may be repeated. They are quarantined; more hold the batch. */
  duplicateShare: 0.1,
  /** Share of the announced rows that may be missing. */
  incompleteShare: 0,
  /** Share of the rows that may be unusable, and share of the rows whose price may exceed `priceRatio`. */
  rejectedShare: 0.1,
  /**
   * This many rows may always go, come, change or be rejected, whatever their share. This many types may always be
   * repeated or jump in price, in any number of regions.
   */
  smallCount: 2,
  /** Per hour, in the published currency; a row above it is rejected. */
  maxHourlyPrice: 1000,
};
export type GuardLimits = Readonly<typeof DEFAULT_GUARD_LIMITS>;

/**
 * `withdrawn` are published machines that this batch excludes, without sold-out ones. `memoryFactor` is the most frequent factor of the
 * reshaped machines' memory; 1 if none was reshaped.
 */
export interface GuardInput extends Omit<CatalogueDiff, 'changed' | 'soldOut'> {
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
  readonly totals: readonly { readonly of: string; readonly advertised: number; readonly fetched: number }[];
}

/** A guard that a batch broke, for operators. */
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

/** Returns a share and its limit as text: `27 %, limit 10 %`. */
function shares(found: number, limit: number): string {
  const percent = (share: number) => `${Number((share * 100).toPrecision(share < 0.1 ? 1 : 2))} %`;
  return `${percent(found)}, limit ${percent(limit)}`;
}

/** Whether a batch has plans of databases alone. A source that has had machines must not lose them, whatever plans it states. */
export function hasPlansAlone(batch: Pick<GuardInput, 'known' | 'seen' | 'rejected' | 'plans'>): boolean {
  return batch.known === 0 && batch.seen === batch.rejected && batch.plans > 0;
}

export function brokenGuards(batch: GuardInput, limits: GuardLimits): BrokenGuard[] {
  const { known, seen, missing, withdrawn } = batch;
  const hasOnlyPlans = hasPlansAlone(batch);
  const broken: BrokenGuard[] = [];
  if (seen === batch.rejected && !hasOnlyPlans) {
    const detail = 'not one usable row; an empty answer is no catalogue';
    broken.push({ guard: 'empty', found: 0, limit: 1, detail });
  }
  for (const { of, advertised, fetched } of batch.totals) {
    const gap = Math.abs(advertised - fetched);
    const limit = limits.incompleteShare;
    if (gap <= advertised * limit) continue;
    const found = gap / Math.max(advertised, 1);
    const detail = `the upstream announced ${advertised} ${of} and sent ${fetched} (${shares(found, limit)})`;
    broken.push({ guard: 'incomplete', found, limit, detail });
  }
  const share = (guard: BrokenGuard['guard'], count: number, of: number, limit: number, detail: string) =>
    broken.push(...excessiveShare(guard, { count, of, limit, detail }, limits));
  const removed =
    withdrawn === 0
      ? 'known rows are not reported any more'
      : `known rows would go: ${missing} are not reported any more, ${withdrawn} would be excluded`;
  share('removed', missing + withdrawn, known, limits.removedShare, removed);
  const lost = 'machines with prices of terms would lose one';
  share('removed', batch.termsLost, batch.knownTerms, limits.removedShare, lost);
  const added = 'rows would be new, counted against the known ones';
  share('added', batch.added, known, limits.addedShare, added);
  share('repriced', batch.repriced, known, limits.repricedShare, 'known rows have another price');
  const memory = batch.memoryFactor === 1 ? '' : `: memory × ${batch.memoryFactor.toPrecision(4)}`;
  const reshaped = `known machines have another size${memory}`;
  share('unit_flip', batch.reshaped, known, limits.reshapedShare, reshaped);
  if (batch.duplicateTypes > limits.smallCount)
    share('duplicates', batch.duplicates, seen, limits.duplicateShare, 'rows are there more than once');
  // Duplicates and price jumps have their own guards.
  const unusable = batch.rejected - batch.duplicates - batch.setAside;
  const rows = hasOnlyPlans ? seen + batch.plans : seen;
  share('rejected', unusable, rows, limits.rejectedShare, 'rows cannot be used');
  return broken;
}

/** The plans of managed databases of a batch. Machines have their own guards, so that many plans do not hide lost machines. */
export interface PlanGuardInput {
  readonly known: number;
  readonly missing: number;
}

export function brokenPlanGuards(plans: PlanGuardInput, limits: GuardLimits): BrokenGuard[] {
  const { known: of, missing: count } = plans;
  const detail = 'known database plans are not reported any more';
  return excessiveShare('removed', { count, of, limit: limits.removedShare, detail }, limits);
}

function excessiveShare(
  guard: BrokenGuard['guard'],
  { count, of, limit, detail }: { count: number; of: number; limit: number; detail: string },
  { smallCount }: GuardLimits,
): BrokenGuard[] {
  const found = count / of;
  if (count <= smallCount || of === 0 || found <= limit) return [];
  return [{ guard, found, limit, detail: `${count} of ${of} ${detail} (${shares(found, limit)})` }];
}

const PRICED = {
  machine: 'a machine',
  term: 'a term',
  region: 'a region',
  plan: 'a database plan',
};
/** What has prices that a batch states. */
export type PriceKind = keyof typeof PRICED;
export const PRICE_KINDS = Object.keys(PRICED) as [PriceKind, ...PriceKind[]];

/** Prices of a kind that would change by more than `priceRatio`. */
export interface PriceJumps {
  /** Rows with a jump, and the number of their types. One mistake in a type affects all its regions. */
  readonly rows: number;
  readonly types: number;
  /** The largest factor. */
  readonly ratio: number;
  /** All rows that the batch states. */
  readonly stated: number;
}

/** Returns the guard that many jumps break. Few wrong prices can be quarantined: undefined. */
export function brokenJumps(
  kind: PriceKind,
  { rows, types, ratio, stated }: PriceJumps,
  { smallCount, rejectedShare, priceRatio: limit }: GuardLimits,
): BrokenGuard | undefined {
  if (types <= smallCount || rows / stated <= rejectedShare) return undefined;
  const detail = `${rows} of ${stated} rows would change the price of ${PRICED[kind]} by more than a factor of ${limit}, one by ${ratio.toPrecision(3)}`;
  return { guard: 'price_ratio', found: ratio, limit, detail };
}

/** Good runs that must miss a row before it is retired. The operator of an approval has seen the missing rows. */
export function runsUntilRetired(approved: boolean | undefined): number {
  return approved ? 1 : 3;
}
