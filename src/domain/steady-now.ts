/**
 * Returns milliseconds as `Date.now()` does, but never goes back: the wall clock at the start of the process plus the monotonic
 * time since. For ages inside a process. Expiries and times of other machines need `Date.now()`.
 */
export const steadyNow = (): number => Math.floor(performance.timeOrigin + performance.now());
