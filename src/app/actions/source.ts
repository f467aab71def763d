/** Runs, disables and retires sources. */
import type { Queue } from 'bullmq';
import type { SourceConfig } from '../../config/config.ts';
import { audit } from '../../db/audit.ts';
import type { Database } from '../../db/connection/connect.ts';
import { type Disabled, disableSource as storeDisabled } from '../../db/sync/disabled.ts';
import { type Retirement, retireSource as storeRetirement } from '../../db/sync/retire.ts';
import { registerSource } from '../../db/sync/run.ts';
import type { Decider } from '../../domain/operator.ts';
import { latestSlot } from '../../domain/schedule.ts';
import { publishNow, type Writing } from './publish.ts';

type KnownSource = Pick<SourceConfig, 'id' | 'kind'> & { readonly adapter: { readonly id: string } };

/** Disables a source. A configured one is stored first, since it may never have run. */
export async function disableSource(
  db: Database,
  configured: readonly KnownSource[],
  id: string,
  decider: Decider,
): Promise<Disabled> {
  const source = configured.find((each) => each.id === id);
  if (source) await registerSource(db, { id, kind: source.kind, adapter: source.adapter.id });
  return storeDisabled(db, id, decider);
}

/** Unpublishes a source's data; its history stays. Undefined for an unknown source. */
export async function retireSource(
  writing: Writing,
  id: string,
  decider: Decider,
): Promise<{ readonly gone: Retirement; readonly published: boolean } | undefined> {
  const gone = await storeRetirement(writing.store, id, new Date().toISOString(), decider);
  return gone && { gone, published: await publishNow(writing) };
}

export interface SyncJob {
  readonly sourceId: string;
  /** RFC 3339. */
  readonly slot: string;
  /** True for a run outside the schedule: it follows another source's run, or an operator requested it. */
  readonly isAdditional?: true;
  readonly askedBy?: string;
}

/** Adds a run outside the schedule. Waiting runs of a source for the same reason become one. */
export const addRun = (
  queue: Queue<SyncJob>,
  job: Omit<SyncJob, 'isAdditional'>,
  why: 'asked' | 'rated' | 'resolve',
) => queue.add('sync', { ...job, isAdditional: true }, { deduplication: { id: `${why}-${job.sourceId}` } });

/** Adds a run for an operator. */
export async function requestRun(
  db: Database,
  queue: Queue<SyncJob>,
  { id: sourceId, schedule }: Pick<SourceConfig, 'id' | 'schedule'>,
  decider: Decider,
): Promise<void> {
  const slot = latestSlot(schedule, new Date());
  // No transaction spans the queue in Redis. The row is written first, so that every run has one.
  await audit(db, decider, { action: 'source.run', subject: { kind: 'source', id: sourceId } });
  await addRun(queue, { sourceId, slot, askedBy: decider.by }, 'asked');
}
