/** Time inside a process: a clock that never goes back, and a limited wait. */

/** The global is a getter, which takes as long as the clock itself. Each read of a document takes the time. */
const clock = performance;
const { timeOrigin } = clock;

/**
 * Returns milliseconds as `Date.now()` does, but never goes back: the wall clock at the start of the process plus the monotonic
 * time since. For ages inside a process. Expiries and times of other machines need `Date.now()`.
 */
export const steadyNow = (): number => Math.floor(timeOrigin + clock.now());

/** Waits at most `ms`. Returns true if the promise was fulfilled by then. @throws the promise's rejection */
export async function withTimeout(ms: number, promise: PromiseLike<unknown>): Promise<boolean> {
  const { promise: expired, resolve } = Promise.withResolvers<false>();
  const timer = setTimeout(() => resolve(false), ms);
  try {
    return await Promise.race([promise.then(() => true), expired]);
  } finally {
    clearTimeout(timer);
  }
}
