/** How long a machine could be ordered, from the times at which that changed. */

export const SHARE_DAYS = 30;
const SHARE_SECONDS = SHARE_DAYS * 24 * 3600;
/** Changes that a machine keeps for its share. More of them in 30 days shorten the time that the share covers. */
export const MOST_STOCK_CHANGES = 128;

/** The stock of a machine in a list with `available=all`. A machine that is in none has no stock. */
export const STOCKS = ['available', 'sold_out'] as const;
export type Stock = (typeof STOCKS)[number];

/**
 * Returns for which share of the last 30 days a machine could be ordered, to 3 decimals. If the first of the times is later, the
 * share counts from it. Only a machine that could be ordered all the time has 1, and only one that never could has 0.
 * @param times seconds since the epoch, ascending: when the machine was first listed, then each change. The state alternates, so
 * the one of today gives every earlier one. Empty: the state never changed.
 * @param now milliseconds since the epoch
 */
export function availableShare(times: ArrayLike<number>, isAvailable: boolean, now: number): number {
  const last = times[times.length - 1] ?? 0;
  // The clock of a reader may be behind that of a worker.
  const end = Math.max(Math.floor(now / 1000), last);
  const start = Math.max(end - SHARE_SECONDS, times[0] ?? 0);
  let [until, available, state] = [end, 0, isAvailable];
  for (let i = times.length - 1; until > start; i--) {
    const from = i > 0 ? Math.max(times[i] as number, start) : start;
    if (state) available += until - from;
    until = from;
    state = !state;
  }
  if (available === 0) return end > start || !isAvailable ? 0 : 1;
  if (available === end - start) return 1;
  return Math.min(0.999, Math.max(0.001, Math.round((available / (end - start)) * 1000) / 1000));
}
