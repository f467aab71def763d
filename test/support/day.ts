import { setTimeout as sleep } from 'node:timers/promises';

/** A schedule whose last slot was half a year ago, and whose next one is as far away: no test meets one. */
export const YEARLY = `0 0 1 ${((new Date().getUTCMonth() + 6) % 12) + 1} *`;

const DAY_MS = 86_400_000;
/** Milliseconds. A test about days takes less, also on a busy machine. */
const ENOUGH_MS = 30_000;

/** Waits for the next day (UTC) if this one is almost over: a test that counts days must begin and end on the same one. */
export async function untilDayLasts(): Promise<void> {
  const left = DAY_MS - (Date.now() % DAY_MS);
  if (left < ENOUGH_MS) await sleep(left);
}
