import type { SourceStatus } from '../db/queries/status.ts';
import { ago } from './table.ts';

type Facts = Pick<SourceStatus, 'id' | 'kind' | 'published' | 'verifiedAt' | 'retiredAt'>;

/** What an operator is told of a source that is stored and not in this configuration: what it is, and what to do. */
export function notConfigured({ id, kind, published, verifiedAt, retiredAt }: Facts, now: Date): string {
  if (retiredAt !== null) return `${id}: retired ${ago(retiredAt, now)}; nothing of it is published`;
  const what = { catalogue: 'machines', clusters: 'clusters', rates: 'exchange rates' }[kind];
  const read = verifiedAt === null ? 'was never read well' : `was last read ${ago(verifiedAt, now)}`;
  const serves =
    published === 0 ? `no ${what} of it are published` : `its ${published} ${what} are still published`;
  return `${id}: not configured here: ${serves}, and it ${read}; unless a worker elsewhere has it, configure it again or take it out of publication: fleetbook source retire ${id}`;
}
