/** Guards: a batch that breaks one is not published but waits for an operator. Each kind of batch has its own guards. */

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

/** What a guard has measured in a batch. */
export interface Guard {
  readonly guard:
    | 'empty'
    | 'incomplete'
    | 'removed'
    | 'added'
    | 'repriced'
    | 'redated'
    | 'price_ratio'
    | 'unit_flip'
    | 'duplicates'
    | 'rejected';
  readonly found: number;
  readonly limit: number;
  readonly isBroken: boolean;
  /** Returns the message for operators. */
  readonly detail: () => string;
}

/** A guard that a batch broke, for operators. */
export interface BrokenGuard extends Omit<Guard, 'isBroken' | 'detail'> {
  readonly detail: string;
}

export function brokenGuards(guards: readonly Guard[]): BrokenGuard[] {
  return guards.flatMap(({ guard, found, limit, isBroken, detail }) =>
    isBroken ? [{ guard, found, limit, detail: detail() }] : [],
  );
}

export function emptyGuard(isBroken: boolean): Guard {
  const detail = () => 'not one usable row; an empty answer is no catalogue';
  return { guard: 'empty', found: 0, limit: 1, isBroken, detail };
}

/** Returns the guard of a share of rows. `smallCount` rows are always allowed. @param what completes `3 of 9 …` */
export function shareGuard(
  guard: Guard['guard'],
  { count, of, limit, what }: { count: number; of: number; limit: number; what: string },
  { smallCount }: GuardLimits,
): Guard {
  const found = count / of;
  const isBroken = count > smallCount && of !== 0 && found > limit;
  return {
    guard,
    found,
    limit,
    isBroken,
    detail: () => `${count} of ${of} ${what} (${shares(found, limit)})`,
  };
}

/** Returns a share and its limit as text: `27 %, limit 10 %`. */
export function shares(found: number, limit: number): string {
  const percent = (share: number) => `${Number((share * 100).toPrecision(share < 0.1 ? 1 : 2))} %`;
  return `${percent(found)}, limit ${percent(limit)}`;
}

/** Good runs that must miss a row before it is retired. The operator of an approval has seen the missing rows. */
export function runsUntilRetired(approved: boolean | undefined): number {
  return approved ? 1 : 3;
}
