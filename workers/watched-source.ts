/** One source that is watched, from the first state to the end of the lease. */
import type { Logger } from 'pino';
import { type ClustersConfig, watchContext } from '../src/app/run-source.ts';
import { withTimeout } from '../src/lib/timeout.ts';
import { type ClusterItem, SourceError } from '../src/sources/source.ts';
import type { SyncResult } from '../src/sync/result.ts';
import { ConflatingChannel } from './conflating-channel.ts';

type State = readonly ClusterItem[];

export interface WatchedSource {
  readonly source: ClustersConfig;
  /** Whether what the source builds upon has run. */
  ready(): Promise<boolean>;
  /** Stores a state, in a run that is recorded, and publishes what changed. */
  store(state: State): Promise<SyncResult['outcome']>;
  /** Records that the watch failed. */
  failed(error: unknown): Promise<void>;
  readonly logger: Logger;
  /** Waits so many milliseconds; the signal ends that early, without a failure. */
  pause(ms: number, signal: AbortSignal): Promise<void>;
  readonly random?: () => number;
}

const READY_CHECK_MS = 500;
const FIRST_PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 60_000;
/** What an upstream may ask for at most. */
const LONGEST_RETRY_AFTER_MS = 3_600_000;
/** Before a state that a run by schedule has overtaken is stored again, at most. */
const OVERTAKEN_PAUSE_MS = 200;
/** A batch that is held is copied whole: until an operator has decided, states are not held one by one. */
const HELD_PAUSE_MS = 5000;
/** What an adapter gets to let go of its connections. */
const END_WITHIN_MS = 3000;

/**
 * Watches until the signal, and never fails: what fails is recorded and begun again after a pause. Each state is stored
 * whole, so of those that pile up only the newest matters.
 */
export async function watchSource(watched: WatchedSource, signal: AbortSignal): Promise<void> {
  const { source, logger, pause } = watched;
  let failures = 0;
  while (!signal.aborted) {
    try {
      await untilReady(watched, signal);
      await watchOnce(watched, signal, () => {
        failures = 0;
      });
    } catch (error) {
      if (signal.aborted) return;
      const ms = pauseAfter(error, failures, watched.random ?? Math.random);
      failures += 1;
      logger.warn(
        { sourceId: source.id, ...(error instanceof SourceError ? { kind: error.kind } : { err: error }) },
        `watching failed, and is begun again in ${Math.round(ms)} ms: ${messageOf(error)}`,
      );
      await pause(ms, signal);
    }
  }
}

/** Milliseconds: twice as long each time, by chance up to half less, never less than the upstream asked for. */
export function pauseAfter(error: unknown, failures: number, random: () => number): number {
  const most = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(failures, 30));
  const asked = error instanceof SourceError ? (error.retryAfterMs ?? 0) : 0;
  return Math.max(most * (0.5 + random() / 2), Math.min(asked, LONGEST_RETRY_AFTER_MS));
}

async function untilReady({ ready, pause }: WatchedSource, signal: AbortSignal): Promise<void> {
  while (!signal.aborted && !(await ready())) await pause(READY_CHECK_MS, signal);
}

/** @throws what the watch or the storing fails with */
async function watchOnce(watched: WatchedSource, signal: AbortSignal, stored: () => void): Promise<void> {
  const { source } = watched;
  const attempt = new AbortController();
  const ends = AbortSignal.any([signal, attempt.signal]);
  const newest = new ConflatingChannel<State>();
  const onEnd = () => newest.fail(ends.reason);
  ends.addEventListener('abort', onEnd, { once: true });
  const reading = readStates(source, ends, newest);
  try {
    for (;;) {
      const next = await newest.take();
      if (signal.aborted) return;
      if ('failure' in next) {
        await watched.failed(next.failure);
        throw next.failure;
      }
      await storeNewest(watched, next.value, newest, signal);
      stored();
    }
  } finally {
    attempt.abort();
    if (!(await withTimeout(END_WITHIN_MS, reading)))
      watched.logger.warn({ sourceId: source.id }, 'the watch does not end when it is told to');
  }
}

async function readStates(
  source: ClustersConfig,
  ends: AbortSignal,
  newest: ConflatingChannel<State>,
): Promise<void> {
  try {
    const states = source.adapter.watch?.(watchContext(source, ends)) ?? [];
    for await (const state of states) {
      if (ends.aborted) return;
      newest.put(state);
    }
    newest.fail(new SourceError('retry', 'the watch came to an end by itself'));
  } catch (error) {
    newest.fail(error);
  }
}

async function storeNewest(
  { store, pause, random = Math.random }: WatchedSource,
  first: State,
  newest: ConflatingChannel<State>,
  signal: AbortSignal,
): Promise<void> {
  let state = first;
  while (!signal.aborted) {
    const outcome = await store(state);
    if (outcome === 'held') await pause(HELD_PAUSE_MS, signal);
    if (outcome !== 'superseded') return;
    // The run that overtook it may have read what was before this state: it is stored again, and overtakes that one.
    await pause(OVERTAKEN_PAUSE_MS * random(), signal);
    state = newest.takeNow() ?? state;
  }
}

function messageOf(error: unknown): string {
  return error instanceof SourceError ? error.message : 'an internal error';
}
