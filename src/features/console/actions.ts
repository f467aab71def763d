/** What the console may do: the functions behind `fleetbook hold`, and runs that are asked for. */
import type { Queue } from 'bullmq';
import type { Logger } from 'pino';
import type { SyncJob } from '../../../workers/queues.ts';
import type { Disposer } from '../../app/disposer.ts';
import { heldDocument } from '../../app/held-document.ts';
import { approveHeld, previewHeld, undoApproval } from '../../app/run-source.ts';
import { composeWorker, type Worker } from '../../app/worker.ts';
import { publishNow } from '../../cli/terminal/open.ts';
import { type Config, type Environment, inspectConfig, type SourceConfig } from '../../config/config.ts';
import { sourceSettings } from '../../config/source-settings.ts';
import { administration } from '../../db/administration/administration.ts';
import { audit } from '../../db/audit.ts';
import type { BatchRecord } from '../../db/held.ts';
import { decide, undoRejection } from '../../db/held.ts';
import { disableSource, enableSource } from '../../db/sync/disabled.ts';
import { cancelRun } from '../../db/sync/live-runs.ts';
import { previewRetirement, retireSource } from '../../db/sync/retire.ts';
import { registerSource } from '../../db/sync/run.ts';
import { latestSlot } from '../../domain/slots.ts';
import type { SyncResult } from '../../sync/result.ts';
import type { HeldActions } from './routes/held.ts';
import type { AdministrationActions } from './routes/organizations.ts';
import { Conflict } from './routes/parameters.ts';
import type { SourceActions } from './routes/source-actions.ts';
import type { RunActions } from './routes/sources.ts';

/** What the console writes with: connects when somebody first looks at a batch or changes something; `closing` closes it. */
export function writer(config: Config, closing: Disposer, logger: Logger): () => Worker {
  let opened: Worker | undefined;
  return () => {
    opened ??= closing.use(composeWorker(config, logger, { decidesCurrency: false }));
    return opened;
  };
}

export function administrationActions(worker: () => Worker): AdministrationActions {
  return {
    by: (decider) => administration(worker().store.db, decider),
    publish: () => publishNow(worker()),
  };
}

export function heldActions(config: Config, worker: () => Worker): HeldActions {
  const sourceOf = ({ id, sourceId }: BatchRecord): SourceConfig => {
    const source = config.sources.find((each) => each.id === sourceId);
    if (source) return source;
    throw new Conflict(
      `batch ${id} is of ${sourceId}, which is not configured here; how it is to be read, its settings say`,
    );
  };
  const stored = async ({ outcome, counts }: SyncResult) =>
    outcome === 'superseded' || outcome === 'cancelled'
      ? undefined
      : { counts, published: await publishNow(worker()) };
  return {
    preview: (batch, limit) => previewHeld(config, worker().store, sourceOf(batch), batch.id, limit),
    async readers(batch, preview, row) {
      const source = sourceOf(batch);
      if (source.kind !== 'catalogue') throw new Conflict(`${source.id} is no catalogue any more`);
      return heldDocument(worker().store, source, preview, row);
    },
    reject: (batch, decider) => decide(worker().store.db, batch.id, 'rejected', decider),
    approve: async (batch, decider) =>
      stored(await approveHeld(config, worker().store, sourceOf(batch), batch.id, decider)),
    async undo(batch, decider) {
      const { store } = worker();
      if (batch.status === 'rejected')
        return (await undoRejection(store.db, batch.id, decider)) ? { counts: null } : undefined;
      return stored(await undoApproval(config, store, sourceOf(batch), batch.id, decider));
    },
  };
}

/** A run that was asked for is a job as any other, so that a worker with room for it carries it out. */
export function runActions(config: Config, sync: Queue<SyncJob>, worker: () => Worker): RunActions {
  return {
    async run(sourceId, decider) {
      const source = config.sources.find(({ id }) => id === sourceId);
      if (!source) return false;
      const slot = latestSlot(source.schedule, new Date());
      // The queue is in Redis, out of reach of a transaction: no run is asked for without its row.
      const { db } = worker().store;
      await audit(db, decider, { action: 'source.run', subject: { kind: 'source', id: sourceId } });
      // Asked for twice while it waits, it runs once.
      await sync.add(
        'sync',
        { sourceId, slot, isAdditional: true, askedBy: decider.by },
        { deduplication: { id: `asked-${sourceId}` } },
      );
      return true;
    },
  };
}

/** What `fleetbook source` does. @param env where the settings of `config` come from */
export function sourceActions(config: Config, env: Environment, worker: () => Worker): SourceActions {
  const { settings, named } = inspectConfig(env);
  return {
    settings(sourceId) {
      const source = named.find(({ id }) => id === sourceId);
      return source ? sourceSettings(source, settings, env) : [];
    },
    async disable(sourceId, decider) {
      const { db } = worker().store;
      const source = config.sources.find(({ id }) => id === sourceId);
      // One that never ran is not stored yet.
      if (source) await registerSource(db, { id: sourceId, kind: source.kind, adapter: source.adapter.id });
      return disableSource(db, sourceId, decider);
    },
    enable: (sourceId, decider) => enableSource(worker().store.db, sourceId, decider),
    cancel: (sourceId, run, decider) => cancelRun(worker().store.db, sourceId, run, decider),
    retirement: (sourceId) => previewRetirement(worker().store.db, sourceId),
    async retire(sourceId, decider) {
      const gone = await retireSource(worker().store, sourceId, new Date().toISOString(), decider);
      return gone && { gone, published: await publishNow(worker()) };
    },
  };
}
