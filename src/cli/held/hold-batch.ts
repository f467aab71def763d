import type { Database } from '../../db/connection/client.ts';
import { type BatchRecord, batchRecord, pendingBatches } from '../../db/held-batches.ts';
import { CommandFailure, UsageFailure } from '../terminal/failure.ts';
import { readId } from '../terminal/options.ts';

export const readBatch = (text: string): number =>
  readId(text, 'batch number', '`fleetbook hold list` shows, e.g. 3');

/** Finds the source's batch without a decision. @throws UsageFailure if there is none */
export async function pendingBatch(db: Database, source: string): Promise<BatchRecord> {
  const batches = await pendingBatches(db);
  const batch = batches.find(({ sourceId }) => sourceId === source);
  if (batch) return batch;
  const others = batches.map(({ sourceId }) => sourceId);
  throw new UsageFailure(
    `no batch of "${source}" is held${others.length > 0 ? `; sources with held batches: ${others.join(', ')}` : ''}`,
  );
}

/** @throws UsageFailure if none is named; CommandFailure if it does not wait for a decision */
export async function namedBatch(
  db: Database,
  source: string,
  named: string | undefined,
  command: 'approve' | 'reject',
): Promise<BatchRecord> {
  if (named === undefined) {
    const { id, heldSince } = await pendingBatch(db, source);
    throw new UsageFailure(
      `name the batch: ${source} has batch ${id}, held since ${heldSince}. See its changes: fleetbook hold show ${source}; then decide: fleetbook hold ${command} ${source} ${id}`,
    );
  }
  const batch = await recordOf(db, source, readBatch(named));
  const { id, status, decidedAt } = batch;
  if (status === 'pending') return batch;
  const what =
    status === 'superseded'
      ? `a later run replaced batch ${id} at ${decidedAt}`
      : `batch ${id} already has a decision: ${decision(batch)}`;
  const newer = await newerBatch(db, source);
  const next = newer
    ? `Batch ${newer.id} waits now: fleetbook hold show ${source}`
    : `No other batch of ${source} waits`;
  throw new CommandFailure(`${source}: nothing was done: ${what}. ${next}`);
}

export async function recordOf(db: Database, source: string, id: number): Promise<BatchRecord> {
  const batch = await batchRecord(db, id);
  if (batch?.sourceId === source) return batch;
  const problem =
    batch === undefined ? `there is no batch ${id}` : `batch ${id} belongs to ${batch.sourceId}`;
  throw new UsageFailure(`${source}: ${problem}; \`fleetbook hold list --all\` shows all`);
}

async function newerBatch(db: Database, source: string): Promise<BatchRecord | undefined> {
  return (await pendingBatches(db)).find(({ sourceId }) => sourceId === source);
}

export async function overtaken(db: Database, source: string): Promise<CommandFailure> {
  const newer = await newerBatch(db, source);
  const next = newer
    ? `batch ${newer.id} waits now: fleetbook hold show ${source}`
    : 'see: fleetbook hold list --all';
  return new CommandFailure(
    `${source}: nothing was done: a new run has begun, or another operator has decided; ${next}`,
  );
}

/** Returns e.g. `approved 2026-01-01T00:00:00Z by ada@desk ("new tariff")`, and whether it was undone. */
export function decision(batch: BatchRecord): string {
  const record = (at: string | null, by: string | null, reason: string | null) =>
    `${at}${by === null ? '' : ` by ${by}`}${reason === null ? '' : ` ("${reason}")`}`;
  const undone =
    batch.undoneAt === null ? '' : `undone ${record(batch.undoneAt, batch.undoneBy, batch.undoneReason)}`;
  if (batch.status === 'pending') return `waits${undone && `, a rejection was ${undone}`}`;
  const decided = batch.status === 'undone' ? 'approved' : batch.status;
  const first = `${decided} ${record(batch.decidedAt, batch.decidedBy, batch.reason)}`;
  return batch.status === 'undone' ? `${first}, ${undone}` : first;
}

/** Finds a source's configuration, which a decision needs. @throws UsageFailure */
export function configured<Source extends { readonly id: string }>(
  sources: readonly Source[],
  id: string,
): Source {
  const source = sources.find((candidate) => candidate.id === id);
  if (source) return source;
  throw new UsageFailure(`source "${id}" is not configured here; set the same settings as for the worker`);
}
