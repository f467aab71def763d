import type { FastifyInstance } from 'fastify';
import { runningVersions, storedLifecycles } from '../../../db/lifecycles.ts';
import { dayOf, isEnding, LIFECYCLE_DAYS, lifecycleOf, urgency } from '../../../domain/lifecycle.ts';
import { choiceOf, integerOf, windowOf } from '../../../ops/parameters.ts';
import type { LifecycleAnswer, VersionRow } from './answers.ts';
import { engineOf } from './clusters.ts';
import type { ConsoleContext } from './context.ts';

/** Clusters that a row names. */
const NAMED = 3;

/** Engines and versions of all organizations' clusters, and the ends of their support. */
export function addLifecycle(api: FastifyInstance, { db }: ConsoleContext): void {
  api.get('/lifecycle', async (request): Promise<LifecycleAnswer> => {
    const { query } = request;
    const within =
      integerOf(query, 'within', LIFECYCLE_DAYS.least, LIFECYCLE_DAYS.most) ?? LIFECYCLE_DAYS.standard;
    const isAll = choiceOf(query, 'show', ['urgent', 'all']) === 'all';
    const engine = await engineOf(db, query);
    const { limit, offset } = windowOf(query);
    const [versions, { cycles, readAt }] = await Promise.all([
      runningVersions(db, NAMED),
      storedLifecycles(db),
    ]);
    const today = dayOf(new Date());
    const rows = versions
      .filter((each) => engine === undefined || each.engine === engine)
      .map((each): VersionRow => ({ ...each, lifecycle: lifecycleOf(each, cycles, today) }));
    const clustersOf = (fits: (row: VersionRow) => boolean) =>
      rows.filter(fits).reduce((sum, { clusters }) => sum + clusters, 0);
    const isSoon = ({ lifecycle }: VersionRow) =>
      lifecycle.state === 'supported' && isEnding(lifecycle, within);
    // The order of the statement is that of equal rows.
    const shown = rows
      .filter((row) => isAll || row.lifecycle.state !== 'supported' || isSoon(row))
      .toSorted((one, other) => compared(urgency(one.lifecycle), urgency(other.lifecycle)));
    return {
      within,
      readAt,
      totals: {
        ended: clustersOf(({ lifecycle }) => lifecycle.state === 'ended'),
        ending: clustersOf(isSoon),
        unknown: clustersOf(({ lifecycle }) => lifecycle.state === 'unknown'),
        all: clustersOf(() => true),
      },
      total: shown.length,
      rows: shown.slice(offset, offset + limit),
    };
  });
}

const compared = (one: string, other: string) => (one < other ? -1 : Number(one > other));
