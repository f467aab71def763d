import { setTimeout as sleep } from 'node:timers/promises';

const DAY_MS = 86_400_000;
/** Milliseconds. A test about days takes less, also on a busy machine. */
const ENOUGH_MS = 30_000;

/** Waits for the next day (UTC) if this one is almost over: a test that counts days must begin and end on the same one. */
export async function untilDayLasts(): Promise<void> {
  const left = DAY_MS - (Date.now() % DAY_MS);
  if (left < ENOUGH_MS) await sleep(left);
}
