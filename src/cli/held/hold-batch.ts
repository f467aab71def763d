/** Which batch an operator names, and what to say where it is not the one to decide about. */
import type { Sql } from '../../db/connection/connect.ts';
import { type BatchRecord, batchRecord, pendingBatches } from '../../db/held-batches.ts';
import { readId } from '../terminal/arguments.ts';
import { CommandFailure, UsageFailure } from '../terminal/failure.ts';

/** @throws UsageFailure for what is no batch number */
export const readBatch = (text: string): number =>
  readId(text, 'batch number', '`fleetbook hold list` shows, e.g. 3');

/** The source's batch that waits. @throws UsageFailure when there is none */
export async function pendingBatch(sql: Sql, source: string): Promise<BatchRecord> {
  const batches = await pendingBatches(sql);
  const batch = batches.find(({ sourceId }) => sourceId === source);
  if (batch) return batch;
  const others = batches.map(({ sourceId }) => sourceId);
  throw new UsageFailure(
    `nothing of "${source}" is held${others.length > 0 ? `; held are ${others.join(', ')}` : ''}`,
  );
}

/**
 * The batch that a person has named, which must be the one that waits: another one has not been seen.
 * @throws UsageFailure when none is named; CommandFailure when it does not wait (any more)
 */
export async function namedBatch(
  sql: Sql,
  source: string,
  named: string | undefined,
  command: 'approve' | 'reject',
): Promise<BatchRecord> {
  if (named === undefined) {
    const { id, heldSince } = await pendingBatch(sql, source);
    throw new UsageFailure(
      `name the batch: ${source} has batch ${id}, held since ${heldSince}. Look at it: fleetbook hold show ${source}; then: fleetbook hold ${command} ${source} ${id}`,
    );
  }
  const batch = await recordOf(sql, source, readBatch(named));
  if (batch.status === 'pending') return batch;
  throw notPending(batch, await newerBatch(sql, source));
}

/** @throws UsageFailure for a number that is none of the source's batches */
export async function recordOf(sql: Sql, source: string, id: number): Promise<BatchRecord> {
  const batch = await batchRecord(sql, id);
  if (batch?.sourceId === source) return batch;
  const whose = batch === undefined ? `there is no batch ${id}` : `batch ${id} is of ${batch.sourceId}`;
  throw new UsageFailure(`${source}: ${whose}; \`fleetbook hold list --all\` shows every one`);
}

async function newerBatch(sql: Sql, source: string): Promise<BatchRecord | undefined> {
  return (await pendingBatches(sql)).find(({ sourceId }) => sourceId === source);
}

function notPending(batch: BatchRecord, newer: BatchRecord | undefined): CommandFailure {
  const { id, sourceId, status, decidedAt } = batch;
  const what =
    status === 'superseded'
      ? `batch ${id} is out of date since ${decidedAt}`
      : `batch ${id} is decided: ${decision(batch)}`;
  const next = newer
    ? `Batch ${newer.id} waits now: look at it: fleetbook hold show ${sourceId}`
    : `No other batch of ${sourceId} waits`;
  return new CommandFailure(`${sourceId}: nothing is done: ${what}. ${next}`);
}

/** Somebody or something was faster than the transaction. */
export async function overtaken(sql: Sql, source: string): Promise<CommandFailure> {
  const newer = await newerBatch(sql, source);
  const next = newer
    ? `batch ${newer.id} waits now: fleetbook hold show ${source}`
    : 'see: fleetbook hold list --all';
  return new CommandFailure(
    `${source}: nothing is done: a run began meanwhile, or somebody else has decided; ${next}`,
  );
}

/** `approved 2026-01-01T00:00:00Z by ada@desk ("new tariff")`, and that it was taken back. */
export function decision(batch: BatchRecord): string {
  const said = (at: string | null, by: string | null, reason: string | null) =>
    `${at}${by === null ? '' : ` by ${by}`}${reason === null ? '' : ` ("${reason}")`}`;
  const undone =
    batch.undoneAt === null ? '' : `undone ${said(batch.undoneAt, batch.undoneBy, batch.undoneReason)}`;
  if (batch.status === 'pending') return `waits${undone && `, a rejection was ${undone}`}`;
  const decided = batch.status === 'undone' ? 'approved' : batch.status;
  const first = `${decided} ${said(batch.decidedAt, batch.decidedBy, batch.reason)}`;
  return batch.status === 'undone' ? `${first}, ${undone}` : first;
}

/** The source's configuration says how its batch is to be read. @throws UsageFailure */
export function configured<Source extends { readonly id: string }>(
  sources: readonly Source[],
  id: string,
): Source {
  const source = sources.find((candidate) => candidate.id === id);
  if (source) return source;
  throw new UsageFailure(
    `source "${id}" is not configured here; give its settings, e.g. as the worker has them`,
  );
}
