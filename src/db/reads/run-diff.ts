/** What is known of the changes of one run, beside their rows. Pure. */
import type { MachineChanges } from './changes.ts';
import type { ClusterChanges } from './cluster-changes.ts';
import type { RunRecord } from './runs.ts';

/** Changes by kind; of exchange rates the run itself has them. */
export type RunDiff =
  | ({ readonly of: 'machines' } & MachineChanges)
  | ({ readonly of: 'clusters' } & ClusterChanges)
  | { readonly of: 'rates' };

/** Whether it is known what the run changed. */
export function isKept({ changedAt, added, changed, retired }: RunRecord): boolean {
  return changedAt !== null || (added ?? 0) + (changed ?? 0) + (retired ?? 0) === 0;
}

/**
 * How many were changed in nothing that a diff shows: only in a price that was converted anew.
 * @param diff of the whole run, without a search
 */
export function unshown(run: RunRecord, diff: RunDiff): number {
  if (diff.of === 'rates' || run.changedAt === null) return 0;
  const shown =
    diff.of === 'clusters'
      ? diff.totals.changed
      : diff.totals.withdrawn +
        diff.totals.sold_out +
        diff.totals.restocked +
        diff.totals.reshaped +
        diff.totals.repriced +
        diff.totals.excluded +
        diff.totals.changed +
        diff.totals.published;
  return Math.max(0, (run.changed ?? 0) - shown);
}
