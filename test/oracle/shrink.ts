/** Finds a shorter history that also fails. */
import { performance } from 'node:perf_hooks';
import { emptyTally, HistoryFailed, runHistory } from './history.ts';
import type { Servers } from './servers.ts';

/** Attempts for each candidate: the timing varies, so a failure may not repeat. */
const TRIES = 2;

export interface Shrunk {
  /** Indices of the remaining operations. */
  readonly only: readonly number[];
  readonly failure: HistoryFailed;
}

/**
 * Drops halves, then quarters, then single operations, while the rest still fails.
 * @param count of operations in the history
 * @param minutes after which it returns the shortest history so far
 */
export async function shrink(
  servers: Servers,
  seed: number,
  count: number,
  failure: HistoryFailed,
  minutes: number,
): Promise<Shrunk> {
  const until = performance.now() + minutes * 60_000;
  let shrunk: Shrunk = { only: Array.from({ length: count }, (_, index) => index), failure };
  for (let size = Math.ceil(count / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let from = 0; from < shrunk.only.length; ) {
      if (performance.now() > until) return shrunk;
      const only = shrunk.only.toSpliced(from, size);
      const smaller = await failureOf(servers, seed, only);
      if (smaller) shrunk = { only, failure: smaller };
      else from += size;
    }
  }
  return shrunk;
}

async function failureOf(
  servers: Servers,
  seed: number,
  only: readonly number[],
): Promise<HistoryFailed | undefined> {
  for (let tried = 0; tried < TRIES; tried++) {
    try {
      await runHistory(servers, seed, emptyTally(), only);
    } catch (error) {
      if (!(error instanceof HistoryFailed)) throw error;
      return error;
    }
  }
  return undefined;
}
