/** The source that an alert is about, and where an operator acts on it. Pure. */
import type { CoreKind } from './rules.ts';

interface Subject {
  readonly kind: string;
  readonly subject: string;
}

interface Action {
  /** A path of the console. */
  readonly path: string;
  readonly command: string;
}

interface Details {
  readonly batch?: number;
  readonly run?: number;
  readonly machine?: number;
  readonly name?: string;
}

const pageOf = (source: string) => `/sources/${encodeURIComponent(source)}`;
const showSource = (source: string): Action => ({
  path: pageOf(source),
  command: `fleetbook source show ${source}`,
});
const showRun = (_: string, { run }: Details): Action => ({
  path: `/runs/${run}`,
  command: `fleetbook run ${run}`,
});

const OF_FLEETBOOK: Action = { path: '/alerts', command: 'fleetbook doctor' };

/** The action of each kind of the core; null for a kind about Fleetbook itself. All kinds of features are about Fleetbook. */
const ACTIONS: Readonly<Record<CoreKind, ((source: string, details: Details) => Action) | null>> = {
  batch_held: (source, { batch }) => ({
    path: batch === undefined ? '/held' : `/held/${batch}`,
    command: `fleetbook hold show ${source}`,
  }),
  source_stale: showSource,
  region_stale: showSource,
  source_failing: showSource,
  source_paused: showSource,
  sold_out: (source) => ({
    path: `${pageOf(source)}?show=excluded`,
    command: `fleetbook excluded ${source}`,
  }),
  prices_moved: showRun,
  stock_flipped: showRun,
  machine_retiring: (_, { machine, name }) => ({
    path: `/machines/${machine}`,
    command: `fleetbook machines ${name}`,
  }),
  publication_behind: null,
  cache_differs: null,
};

const actionOfKind = (kind: string) => (Object.hasOwn(ACTIONS, kind) ? ACTIONS[kind as CoreKind] : null);

/** Returns the id of the alert's source; undefined for an alert about Fleetbook itself. */
export function sourceOfAlert({ kind, subject }: Subject): string | undefined {
  // The subject of a region is `hetzner/fsn1`, that of a machine `azure/eastus/Standard_D1`, that of a run `hetzner#12`.
  return actionOfKind(kind) === null ? undefined : subject.split(/[/#]/)[0];
}

/** Returns the page and the command that solve the alert. */
export function actionOf(alert: Subject, details: unknown): Action {
  const action = actionOfKind(alert.kind);
  if (action === null) return OF_FLEETBOOK;
  return action(sourceOfAlert(alert) ?? alert.subject, (details ?? {}) as Details);
}
