/** The charts: what readers and workers have reported in the last minutes. */
import type { FastifyInstance } from 'fastify';
import { linesOf, reportersOf } from '../charts.ts';
import { KEPT_MS, type ReadAfter, type Reported, reportedLately } from '../reported.ts';
import type { ChartsAnswer, ShownReporters } from './api.ts';
import { Away, integerOf, type Parameters } from './parameters.ts';
import { shared } from './shared.ts';

const MINUTES = 60;
const MOST_MINUTES = Math.floor(KEPT_MS / 60_000);
/** For so long what was read is given again: processes report every ten seconds. */
const READ_MS = 2000;

export function addCharts(api: FastifyInstance, read: ReadAfter): void {
  const reported = shared(reportedLately(read), READ_MS);
  api.get('/charts', async (request): Promise<ChartsAnswer> => {
    const minutes = integerOf(request.query as Parameters, 'minutes', 5, MOST_MINUTES) ?? MINUTES;
    const found = await reported().catch(() => {
      throw new Away(
        'the cache’s Redis does not answer, so that nobody knows what was measured; readers answer without it',
      );
    });
    return {
      now: new Date(found.now).toISOString(),
      readers: shown(found, 'reader'),
      workers: shown(found, 'worker'),
      ...linesOf(found, minutes),
    };
  });
}

function shown(reported: Reported, kind: 'reader' | 'worker'): ShownReporters {
  const { processes, last } = reportersOf(reported, kind);
  return { processes, lastReport: last === null ? null : new Date(last).toISOString() };
}
