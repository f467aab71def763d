/** How long a fuzz runs and from which seed: in CI a number of rounds, else minutes. */
import fc from 'fast-check';

/** Set by `npm run fuzz`: minutes, and the seed of a run that is to be repeated. */
const { FUZZ_MINUTES, FUZZ_SEED } = process.env;

export interface Budget {
  readonly seed: number;
  /** Rounds without FUZZ_MINUTES, and at a time with them. */
  readonly rounds: number;
  /** With FUZZ_MINUTES, for how long rounds begin. */
  readonly ms: number;
  /** For the test runner, in milliseconds. */
  readonly timeout: number;
}

/**
 * @param what is fuzzed, for the line that says the seed
 * @param rounds how many there are without FUZZ_MINUTES
 * @param share of FUZZ_MINUTES that is this one's
 */
export function budget(what: string, rounds: number, share: number): Budget {
  const seed = FUZZ_SEED === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(FUZZ_SEED);
  if (!Number.isInteger(seed)) throw new Error(`FUZZ_SEED is ${FUZZ_SEED}; it must be a whole number`);
  const minutes = FUZZ_MINUTES === undefined ? 0 : Number(FUZZ_MINUTES);
  if (FUZZ_MINUTES !== undefined && !(minutes > 0))
    throw new Error(`FUZZ_MINUTES is ${FUZZ_MINUTES}; it must be a number above 0`);
  process.stdout.write(`fuzz of ${what}: FUZZ_SEED=${seed} repeats it\n`);
  const ms = minutes * 60_000 * share;
  return { seed, rounds, ms, timeout: ms + 600_000 };
}

/**
 * Runs the rounds, with FUZZ_MINUTES again and again, each time from the seed that follows.
 * @throws Error that says what failed, and the seed that repeats it
 */
export async function fuzz<T>(property: fc.IAsyncProperty<T>, budget: Budget): Promise<void> {
  const { rounds: numRuns, ms } = budget;
  const until = performance.now() + ms;
  let { seed } = budget;
  do {
    // The message names what failed: a batch of a hundred requests need not become smaller, which takes minutes.
    const { failed, errorInstance } = await fc.check(property, { seed, numRuns, endOnFailure: true });
    if (failed) {
      const what = errorInstance instanceof Error ? errorInstance.message : String(errorInstance);
      throw new Error(`${what}\nFUZZ_SEED=${seed} repeats it`, { cause: errorInstance });
    }
    seed = (seed + 1) % 2 ** 31;
  } while (performance.now() < until);
}

/** One of a list, by a generated number. */
export function pick<T>(list: readonly T[], index: number): T {
  const found = list[index % list.length];
  if (found === undefined) throw new Error('an empty list');
  return found;
}
