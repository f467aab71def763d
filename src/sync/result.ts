import type { ReasonGroup, RejectedKey } from '../db/queries/rejected.ts';
import { NO_COUNTS, type RunCounts } from '../db/queries/runs.ts';
import type { BrokenGuard } from './guard.ts';

/** What became of a run. A held one has stored what was safe by itself, see docs/decisions. */
export interface SyncResult {
  readonly outcome: 'changed' | 'unchanged' | 'held' | 'superseded';
  readonly counts: RunCounts;
  readonly broken: readonly BrokenGuard[];
  /** The rows that could not be used; at most one more than are kept, while `counts` has all of them. */
  readonly rejected: readonly RejectedKey[];
  /** Why machines that readers saw until then are excluded now. */
  readonly withdrawn: readonly ReasonGroup[];
  /** How many regions the batch named. */
  readonly regions: number;
}

/** The result of a run that has stored nothing. */
export function nothingStored(outcome: SyncResult['outcome']): SyncResult {
  return { outcome, counts: NO_COUNTS, broken: [], rejected: [], withdrawn: [], regions: 0 };
}
