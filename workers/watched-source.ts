import type { Logger } from 'pino';
import { type ClustersConfig, watchContext } from '../src/app/run-source.ts';
import { withTimeout } from '../src/domain/clock.ts';
import { orAborted } from '../src/sources/http/deadline.ts';
import { type ClusterItem, SourceError } from '../src/sources/source.ts';
import type { SyncResult } from '../src/sync/pipeline.ts';

type State = readonly ClusterItem[];

export interface WatchedSource {
  readonly source: ClustersConfig;
  /** Returns true if the sources that this one depends on have run. */
  ready(): Promise<boolean>;
  /** Stores a state in a recorded run, and publishes the changes. */
  store(state: State): Promise<SyncResult['outcome']>;
  failed(error: unknown): Promise<void>;
  readonly logger: Logger;
  /** Waits, at most until the signal aborts. It never rejects. */
  pause(ms: number, signal: AbortSignal): Promise<void>;
  readonly random?: () => number;
}

const READY_CHECK_MS = 500;
const FIRST_PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 60_000;
const LONGEST_RETRY_AFTER_MS = 3_600_000;
/** Longest pause before a superseded state is stored again. */
const OVERTAKEN_PAUSE_MS = 200;
/** Pause after a held batch. Every hold copies the whole batch, so not every state is held. */
const HELD_PAUSE_MS = 5000;
const END_WITHIN_MS = 3000;

/** Watches until the signal aborts; never rejects. Each state is complete, so only the newest one matters. */
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
        `the watch failed and starts again in ${Math.round(ms)} ms: ${messageOf(error)}`,
      );
      await pause(ms, signal);
    }
  }
}

/** Returns the pause in ms. It doubles each time, minus jitter of up to one half, and respects `Retry-After`. */
export function pauseAfter(error: unknown, failures: number, random: () => number): number {
  const most = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(failures, 30));
  const retryAfter = error instanceof SourceError ? (error.retryAfterMs ?? 0) : 0;
  return Math.max(most * (0.5 + random() / 2), Math.min(retryAfter, LONGEST_RETRY_AFTER_MS));
}

async function untilReady({ ready, pause }: WatchedSource, signal: AbortSignal): Promise<void> {
  while (!signal.aborted && !(await ready())) await pause(READY_CHECK_MS, signal);
}

/** @throws the failure of the watch or of the storing */
async function watchOnce(watched: WatchedSource, signal: AbortSignal, stored: () => void): Promise<void> {
  const attempt = new AbortController();
  let newest: State | undefined;
  let arrival = Promise.withResolvers<void>();
  const reading = readStates(watched.source, AbortSignal.any([signal, attempt.signal]), (state) => {
    newest = state;
    arrival.resolve();
  });
  /** Returns the newest state that is not stored yet. */
  const takeNewest = (): State | undefined => {
    const state = newest;
    newest = undefined;
    arrival = Promise.withResolvers();
    return state;
  };
  try {
    while (!signal.aborted) {
      // A state that has arrived is stored before the failure of its watch counts.
      if (newest === undefined)
        await orAborted(Promise.race([arrival.promise, reading]), signal).catch(async (failure: unknown) => {
          if (!signal.aborted) await watched.failed(failure);
          throw failure;
        });
      await storeNewest(watched, takeNewest, signal);
      stored();
    }
  } finally {
    attempt.abort();
    const ended = reading.catch(() => {});
    if (!(await withTimeout(END_WITHIN_MS, ended)))
      watched.logger.warn({ sourceId: watched.source.id }, 'the watch did not end in time');
  }
}

/** Passes each state on. It rejects when the watch ends. */
async function readStates(
  source: ClustersConfig,
  ends: AbortSignal,
  onState: (state: State) => void,
): Promise<never> {
  for await (const state of source.adapter.watch?.(watchContext(source, ends)) ?? []) {
    ends.throwIfAborted();
    onState(state);
  }
  throw new SourceError('retry', 'the watch ended without a request');
}

async function storeNewest(
  { store, pause, random = Math.random }: WatchedSource,
  takeNewest: () => State | undefined,
  signal: AbortSignal,
): Promise<void> {
  let state = takeNewest();
  while (state !== undefined && !signal.aborted) {
    const outcome = await store(state);
    if (outcome === 'held') await pause(HELD_PAUSE_MS, signal);
    if (outcome !== 'superseded') return;
    // The other run may have read an older state, so this one is stored again.
    await pause(OVERTAKEN_PAUSE_MS * random(), signal);
    state = takeNewest() ?? state;
  }
}

function messageOf(error: unknown): string {
  return error instanceof SourceError ? error.message : 'an internal error';
}
