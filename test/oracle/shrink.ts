/** A failing history without the operations that it fails without. */
import { performance } from 'node:perf_hooks';
import { emptyTally, HistoryFailed, runHistory } from './history.ts';
import type { Servers } from './servers.ts';

/** Time is not the seed's: a history that fails once may not fail every time. */
const TRIES = 2;

export interface Shrunk {
  /** Indices of the operations that are left. */
  readonly only: readonly number[];
  readonly failure: HistoryFailed;
}

/**
 * Drops halves, then quarters, and at last single operations, for as long as the rest fails.
 * @param count of operations in the history
 * @param minutes after which what was found so far is good enough
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
