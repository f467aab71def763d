import { describe, expect, it } from 'vitest';
import { groupRuns } from '../../../packages/console/src/lib/group-runs.ts';
import type { TimelineEntry, TimelineRun } from '../../../src/features/console/routes/answers.ts';

const run = (id: number, outcome: string, more: Partial<TimelineRun> = {}): TimelineEntry => ({
  kind: 'run',
  at: `2026-01-01T00:00:0${id}.000000Z`,
  run: {
    id,
    slot: null,
    cause: null,
    askedBy: null,
    startedAt: '2026-01-01T00:00:00Z',
    finishedAt: null,
    outcome,
    seen: null,
    added: null,
    changed: null,
    retired: null,
    rejected: null,
    withdrawn: null,
    error: null,
    heldBatch: null,
    ...more,
  },
});
const did: TimelineEntry = {
  kind: 'action',
  at: '2026-01-01T00:00:09.000000Z',
  did: { action: 'source.enable', by: 'ada', reason: null, details: {} },
};
const shown = (entries: readonly TimelineEntry[]) =>
  groupRuns(entries).map((line) => (line.kind === 'runs' ? line.runs.map(({ id }) => id) : line.kind));

describe('the lines of a timeline', () => {
  it('group equal consecutive failures', () => {
    const failed = { error: 'status 503' };
    const entries = [
      run(5, 'failed', failed),
      run(4, 'failed', failed),
      run(3, 'failed', { error: 'status 401' }),
    ];
    expect(shown([...entries, run(2, 'unchanged'), run(1, 'unchanged')])).toEqual([[5, 4], [3], [2], [1]]);
  });

  it('group repeated reads of one batch', () => {
    const batch = { heldBatch: 7, error: '3 of 4 rows' };
    expect(
      shown([run(3, 'held', batch), run(2, 'held', batch), run(1, 'held', { ...batch, heldBatch: 6 })]),
    ).toEqual([[3, 2], [1]]);
  });

  it('separate failures with an action of an operator in between', () => {
    expect(shown([run(2, 'failed'), did, run(1, 'failed')])).toEqual([[2], 'action', [1]]);
  });
});
