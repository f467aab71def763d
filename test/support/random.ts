/** Set at night: random tests run at their full length, from a new seed. For a change they run a fifth of it, from one seed. */
export const IS_LONG = Boolean(process.env.LONG_RANDOM);

/** The first seed of all random tests. `RANDOM_SEED` repeats a run, and with `RANDOM_PATH` one case that fast-check has printed. */
export const SEED = Number(process.env.RANDOM_SEED ?? (IS_LONG ? Math.floor(Math.random() * 2 ** 31) : 1));

/** Returns how often a random test runs, from its full length. */
export const runs = (full: number): number => (IS_LONG ? full : Math.ceil(full / 5));

/** A small seeded generator (mulberry32) of numbers from 0 to below 1, so that a failure can be repeated. */
export function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** Returns a whole number from 0 to below `below`. */
export const wholeNumber = (random: () => number, below: number): number => Math.floor(random() * below);

/** Returns the element at an index of any size, modulo the length. @throws Error for an empty list */
export function cyclic<T>(all: readonly T[], index: number): T {
  const found = all[index % all.length];
  if (found === undefined) throw new Error('there is none to choose from');
  return found;
}
