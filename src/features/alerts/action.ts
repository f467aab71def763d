/** Where an operator acts on an alert. Pure. */
import { sourceOfAlert } from './subject.ts';

export interface AlertAction {
  /** Of the console. */
  readonly path: string;
  readonly command: string;
}

/** The page of the console and the command that show what an alert is about. */
export function actionOf(kind: string, subject: string, details: unknown): AlertAction {
  const { batch, run } = (details ?? {}) as { batch?: number; run?: number };
  const source = sourceOfAlert({ kind, subject }) ?? subject;
  switch (kind) {
    case 'batch_held':
      return {
        path: batch === undefined ? '/held' : `/held/${batch}`,
        command: `fleetbook hold show ${source}`,
      };
    case 'prices_moved':
      return { path: `/runs/${run}`, command: `fleetbook run ${run}` };
    case 'sold_out':
      return { path: `/sources/${encodeURIComponent(source)}`, command: `fleetbook excluded ${source}` };
    case 'source_stale':
    case 'region_stale':
    case 'source_failing':
      return { path: `/sources/${encodeURIComponent(source)}`, command: `fleetbook source show ${source}` };
    default:
      return { path: '/alerts', command: 'fleetbook doctor' };
  }
}
