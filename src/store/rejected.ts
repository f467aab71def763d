/** A row that cannot be used, with what is known of whose it is; see `RejectedRow` in sources/source.ts. */
export interface RejectedKey {
  readonly key: string;
  readonly regionCode?: string | undefined;
  readonly name?: string | undefined;
  readonly organization?: string | undefined;
  readonly reason: string;
}

/** So many are kept with their reasons: an upstream that sends nothing but rubbish must not fill the memory. */
export const REJECTED_KEPT = 10_000;

/** What stands for the rows that are not kept: they may be anybody's. */
export const OTHERS: RejectedKey = {
  key: 'others',
  reason: `more than ${REJECTED_KEPT} rows cannot be used; the others are not listed`,
};

/** The rows to go by, where one more than `REJECTED_KEPT` were collected at most. */
export function boundedRejected(rejected: readonly RejectedKey[]): readonly RejectedKey[] {
  return rejected.length <= REJECTED_KEPT ? rejected : [...rejected.slice(0, REJECTED_KEPT), OTHERS];
}
