import type { FastifyInstance } from 'fastify';
import { openSince } from '../../../db/alerts.ts';
import { dirtyDocumentCounts } from '../../../db/versions.ts';
import { shared } from '../../../ops/shared-reads.ts';
import { pendingBacklog } from '../queries/batches.ts';
import { type RunStep, runSteps, type Steps } from '../queries/runs.ts';
import type { ChartsAnswer } from './answers.ts';
import type { ConsoleContext } from './context.ts';
import { jobCounts } from './queues.ts';

const STEPS = 48;
const STEP_S = 1800;
/** Cache time (ms); any change invalidates it earlier. */
const CHARTS_MS = 2000;

export function addCharts(api: FastifyInstance, { db, queues, addChangeListener }: ConsoleContext): void {
  const read = shared(async (): Promise<ChartsAnswer> => {
    // The last step ends with the minute under way, so that all steps are equally long.
    const to = (Math.floor(Date.now() / 60_000) + 1) * 60;
    const window: Steps = { from: to - STEPS * STEP_S, step: STEP_S, steps: STEPS };
    const [runs, dirty, behindSince, held, jobs] = await Promise.all([
      runSteps(db, window),
      dirtyDocumentCounts(db),
      openSince(db, 'publication_behind'),
      pendingBacklog(db),
      jobCounts(queues, window),
    ]);
    return {
      times: Array.from({ length: STEPS }, (_, i) => window.from + i * STEP_S),
      ...linesOf(runs),
      jobs,
      publication: {
        documents: Object.values(dirty).reduce((sum: number, count: number) => sum + count, 0),
        behindSince,
      },
      held,
    };
  }, CHARTS_MS);
  addChangeListener(read.invalidate);
  api.get('/charts', () => read());
}

function linesOf(runs: readonly RunStep[]): Pick<ChartsAnswer, 'runs' | 'seconds' | 'rows'> {
  const steps = new Map(runs.map((each) => [each.index, each]));
  const line = <K extends keyof RunStep, N extends number | null>(key: K, none: N): (RunStep[K] | N)[] =>
    Array.from({ length: STEPS }, (_, i) => steps.get(i)?.[key] ?? none);
  return {
    runs: {
      changed: line('changed', 0),
      unchanged: line('unchanged', 0),
      held: line('held', 0),
      failed: line('failed', 0),
    },
    seconds: { median: line('median', null), longest: line('longest', null) },
    rows: {
      added: line('rowsAdded', 0),
      changed: line('rowsChanged', 0),
      retired: line('rowsRetired', 0),
    },
  };
}
