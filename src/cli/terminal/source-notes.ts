/** Notes on sources that no worker reads. */
import type { SourceStatus } from '../../db/sources.ts';
import type { Disabling } from '../../domain/disabled-source.ts';
import { ago } from './table.ts';

/** Says who disabled a source, and how to enable it. */
export function disabledNote(id: string, { at, by, reason }: Disabling, now: Date): string {
  const why = reason === null ? '' : ` (${reason})`;
  return `${id}: disabled ${ago(at, now)} by ${by}${why}: nothing reads it, and what it has published stays; to read it again: fleetbook source enable ${id}`;
}

/** A source that is stored and not in this configuration: what it is, and what to do. */
export function notConfigured(
  {
    id,
    kind,
    published,
    verifiedAt,
    retiredAt,
  }: Pick<SourceStatus, 'id' | 'kind' | 'published' | 'verifiedAt' | 'retiredAt'>,
  now: Date,
): string {
  if (retiredAt !== null) return `${id}: retired ${ago(retiredAt, now)}; nothing of it is published`;
  const what = { catalogue: 'machines', clusters: 'clusters', rates: 'exchange rates' }[kind];
  const read = verifiedAt === null ? 'was never read well' : `was last read ${ago(verifiedAt, now)}`;
  const serves =
    published === 0 ? `no ${what} of it are published` : `its ${published} ${what} are still published`;
  return `${id}: not configured here: ${serves}, and it ${read}; unless a worker elsewhere has it, configure it again or take it out of publication: fleetbook source retire ${id}`;
}
