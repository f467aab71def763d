/** The source that an alert is about, and where an operator acts on it. Pure. */

/** Kinds of alerts about a source. All other kinds are about Fleetbook itself. */
const OF_SOURCES: readonly string[] = [
  'batch_held',
  'source_stale',
  'region_stale',
  'source_failing',
  'sold_out',
  'source_set_aside',
  'prices_moved',
  'stock_flipped',
];

interface Subject {
  readonly kind: string;
  readonly subject: string;
}

/** Returns the id of the alert's source; undefined for an alert about Fleetbook itself. */
export function sourceOfAlert({ kind, subject }: Subject): string | undefined {
  // The subject of a region is `hetzner/fsn1`, that of a run `hetzner#12`.
  return OF_SOURCES.includes(kind) ? subject.split(/[/#]/)[0] : undefined;
}

export function actionOf(
  alert: Subject,
  details: unknown,
): { readonly path: string; readonly command: string } {
  const { batch, run } = (details ?? {}) as { batch?: number; run?: number };
  const source = sourceOfAlert(alert) ?? alert.subject;
  const page = `/sources/${encodeURIComponent(source)}`;
  switch (alert.kind) {
    case 'batch_held':
      return {
        path: batch === undefined ? '/held' : `/held/${batch}`,
        command: `fleetbook hold show ${source}`,
      };
    case 'prices_moved':
    case 'stock_flipped':
      return { path: `/runs/${run}`, command: `fleetbook run ${run}` };
    case 'sold_out':
      return { path: page, command: `fleetbook excluded ${source}` };
    case 'source_stale':
    case 'region_stale':
    case 'source_failing':
      return { path: page, command: `fleetbook source show ${source}` };
    default:
      return { path: '/alerts', command: 'fleetbook doctor' };
  }
}
