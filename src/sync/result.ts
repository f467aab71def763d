import { NO_COUNTS, type RunCounts } from '../db/sync/run.ts';
import type { ReasonGroup, RejectedKey } from '../domain/rejected-rows.ts';
import type { BrokenGuard } from './guard.ts';

/** How a run ended. A held one may have stored the part that was safe: docs/decisions/0025. */
export interface SyncResult {
  readonly outcome: 'changed' | 'unchanged' | 'held' | 'superseded' | 'cancelled';
  readonly counts: RunCounts;
  readonly broken: readonly BrokenGuard[];
  /** The rows that could not be used; at most one more than are kept, while `counts` has all of them. */
  readonly rejected: readonly RejectedKey[];
  /** Why machines that were published until now are excluded. */
  readonly withdrawn: readonly ReasonGroup[];
  /** How many regions the batch named. */
  readonly regions: number;
}

/** The result of a run that has stored nothing. */
export function nothingStored(outcome: SyncResult['outcome']): SyncResult {
  return { outcome, counts: NO_COUNTS, broken: [], rejected: [], withdrawn: [], regions: 0 };
}
