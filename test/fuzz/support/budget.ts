/** The length and seed of a fuzz: a number of rounds, or minutes. */
import fc from 'fast-check';
import { runs, SEED } from '../../support/random.ts';

/** Set by `npm run fuzz`. */
const { FUZZ_MINUTES } = process.env;

export interface Budget {
  readonly seed: number;
  /** Rounds without FUZZ_MINUTES, and in each batch with it. */
  readonly rounds: number;
  /** With FUZZ_MINUTES, how long new rounds begin. */
  readonly ms: number;
  /** For the test runner, in milliseconds. */
  readonly timeout: number;
}

/**
 * @param what the fuzzed thing, for the line with the seed
 * @param rounds the number without FUZZ_MINUTES
 * @param share this fuzz's part of FUZZ_MINUTES
 */
export function budget(what: string, rounds: number, share: number): Budget {
  const minutes = FUZZ_MINUTES === undefined ? 0 : Number(FUZZ_MINUTES);
  if (FUZZ_MINUTES !== undefined && !(minutes > 0))
    throw new Error(`FUZZ_MINUTES is ${FUZZ_MINUTES}; it must be a number above 0`);
  process.stdout.write(`fuzz of ${what}: RANDOM_SEED=${SEED} repeats it\n`);
  const ms = minutes * 60_000 * share;
  return { seed: SEED, rounds: minutes > 0 ? rounds : runs(rounds), ms, timeout: ms + 600_000 };
}

/**
 * Runs the rounds; with FUZZ_MINUTES repeatedly, each time with the next seed.
 * @throws Error that names the failure and the seed that repeats it
 */
export async function fuzz<T>(property: fc.IAsyncProperty<T>, budget: Budget): Promise<void> {
  const { rounds: numRuns, ms } = budget;
  const until = performance.now() + ms;
  let { seed } = budget;
  do {
    // The message names the failure: to shrink a batch of a hundred requests takes minutes and is not needed.
    const { failed, errorInstance } = await fc.check(property, { seed, numRuns, endOnFailure: true });
    if (failed) {
      const what = errorInstance instanceof Error ? errorInstance.message : String(errorInstance);
      throw new Error(`${what}\nRANDOM_SEED=${seed} repeats it`, { cause: errorInstance });
    }
    seed = (seed + 1) % 2 ** 31;
  } while (performance.now() < until);
}

/** Returns one of a list, by a generated number. */
export function pick<T>(list: readonly T[], index: number): T {
  const found = list[index % list.length];
  if (found === undefined) throw new Error('an empty list');
  return found;
}
