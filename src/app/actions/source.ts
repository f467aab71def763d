/** Requests runs of sources, disables and retires sources. */
import type { SourceConfig } from '../../config/config.ts';
import { audit } from '../../db/audit.ts';
import type { Database } from '../../db/connection/connect.ts';
import type { Decider } from '../../domain/operator.ts';
import type { RequestedRun } from '../../domain/run.ts';
import { latestSlot } from '../../domain/schedule.ts';
import { type Disabled, endPause, disableSource as storeDisabled } from '../../sync/runs/disabled.ts';
import { liveRunOf } from '../../sync/runs/live.ts';
import { type Retirement, retireSource as storeRetirement } from '../../sync/runs/retire-source.ts';
import { registerSource } from '../../sync/runs/run.ts';
import { requestAttempt } from '../../sync/runs/slots.ts';
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

/** A job of the queue: one attempt of a slot of a source. */
export interface SyncJob {
  readonly sourceId: string;
  /** RFC 3339. */
  readonly slot: string;
  readonly attempt: number;
}

type ScheduledSource = Pick<SourceConfig, 'id' | 'schedule'>;

/** Requests a run outside the schedule, because another source's run has new data for it. */
export async function requestFollowing(db: Database, { id, schedule }: ScheduledSource): Promise<void> {
  await requestAttempt(db, { schedule: id, slot: latestSlot(schedule, new Date()) }, { cause: 'follow' });
}

/** Requests a run for an operator, which ends a pause of the source. It begins when the current run of the source has ended, and otherwise at once. */
export async function requestRun(
  db: Database,
  { id, schedule }: ScheduledSource,
  decider: Decider,
): Promise<RequestedRun> {
  const slot = latestSlot(schedule, new Date());
  return db.transaction(async (tx) => {
    await endPause(tx, id);
    await requestAttempt(tx, { schedule: id, slot }, { cause: 'hand', askedBy: decider.by });
    await audit(tx, decider, { action: 'source.run', subject: { kind: 'source', id } });
    const currentRun = (await liveRunOf(tx, id)) ?? null;
    return { starts: currentRun === null ? 'now' : 'after the current run', currentRun };
  });
}
