/** Groups equal consecutive runs of a timeline. Pure. */
import type { TimelineEntry, TimelineRun } from '../../../../src/features/console/routes/answers.ts';

/** One line of a timeline: an entry, or a group of consecutive equal runs, newest first. */
export type TimelineLine =
  | { readonly kind: 'runs'; readonly at: string; readonly runs: readonly [TimelineRun, ...TimelineRun[]] }
  | Exclude<TimelineEntry, { kind: 'run' }>;

/** Outcomes whose equal consecutive runs are grouped. */
const GROUPED = ['failed', 'interrupted', 'held'];

export function groupRuns(entries: readonly TimelineEntry[]): TimelineLine[] {
  const lines: TimelineLine[] = [];
  for (const entry of entries) {
    if (entry.kind !== 'run') {
      lines.push(entry);
      continue;
    }
    const { at, run } = entry;
    const last = lines.at(-1);
    if (last?.kind === 'runs' && areEqual(last.runs[0], run))
      lines[lines.length - 1] = { ...last, runs: [...last.runs, run] };
    else lines.push({ kind: 'runs', at, runs: [run] });
  }
  return lines;
}

function areEqual(one: TimelineRun, other: TimelineRun): boolean {
  return (
    GROUPED.includes(one.outcome) &&
    one.outcome === other.outcome &&
    one.error === other.error &&
    one.heldBatch === other.heldBatch
  );
}
