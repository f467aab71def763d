/** The charts of the overview: what PostgreSQL holds of runs, and BullMQ of jobs. */
import type { FastifyInstance } from 'fastify';
import type { OpsContext } from '../../../app/feature.ts';
import type { Sql } from '../../../db/connection/client.ts';
import { pendingBacklog } from '../../../db/held-batches.ts';
import { type RunStep, runSteps, type Steps } from '../../../db/runs/records.ts';
import { dirtyDocumentCounts } from '../../../db/versions.ts';
import type { ChartsAnswer } from './api.ts';
import { jobCounts } from './job-counts.ts';
import { shared } from './shared.ts';

const STEPS = 48;
const STEP_S = 1800;
/** Milliseconds for which one read serves all open pages. */
const READ_MS = 2000;
/** Milliseconds that the queues' Redis may take. */
const QUEUES_WITHIN_MS = 1000;

interface Dependencies extends Pick<OpsContext, 'queues' | 'openAlerts'> {
  readonly sql: Sql;
  now(): Date;
}

export function addCharts(api: FastifyInstance, { sql, queues, openAlerts, now }: Dependencies): void {
  const read = shared(async (): Promise<ChartsAnswer> => {
    // The last step ends with the minute under way, so that it is as long as the others.
    const to = (Math.floor(now().getTime() / 60_000) + 1) * 60;
    const window: Steps = { from: to - STEPS * STEP_S, step: STEP_S, steps: STEPS };
    const [runs, dirty, behindSince, held, jobs] = await Promise.all([
      runSteps(sql, window),
      dirtyDocumentCounts(sql),
      openAlerts?.openSince(sql, 'publication_behind') ?? null,
      pendingBacklog(sql),
      jobCounts(queues, window, QUEUES_WITHIN_MS),
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
  }, READ_MS);
  api.get('/charts', () => read());
}

function linesOf(runs: readonly RunStep[]): Pick<ChartsAnswer, 'runs' | 'seconds' | 'rows'> {
  const found = new Map(runs.map((each) => [each.index, each]));
  const line = <T>(value: (step: RunStep) => T, none: T): T[] =>
    Array.from({ length: STEPS }, (_, i) => {
      const step = found.get(i);
      return step === undefined ? none : value(step);
    });
  return {
    runs: {
      changed: line(({ changed }) => changed, 0),
      unchanged: line(({ unchanged }) => unchanged, 0),
      held: line(({ held }) => held, 0),
      failed: line(({ failed }) => failed, 0),
    },
    seconds: {
      median: line(({ median }) => median, null),
      longest: line(({ longest }) => longest, null),
    },
    rows: {
      added: line(({ rowsAdded }) => rowsAdded, 0),
      changed: line(({ rowsChanged }) => rowsChanged, 0),
      retired: line(({ rowsRetired }) => rowsRetired, 0),
    },
  };
}
