/**
 * When a machine leaves the catalogue: once it can no longer be ordered, not when its provider announces that.
 * `END` in sync/catalogue/end-of-sale.ts is the same rule for stored machines.
 */
import type { MachineFacts } from './machine-facts.ts';

type EndOfSale = Partial<Pick<MachineFacts, 'orderableUntil' | 'retiresAt'>>;

/** Providers write this year for a day that never comes. */
const NEVER = /^9999-\d{2}-\d{2}/;

/** True for a date, or an RFC 3339 time, that means never. */
export function isNever(time: string): boolean {
  return NEVER.test(time);
}

/** A machine that its provider retires can be ordered until then, unless the provider states an earlier end of its sale. */
export function hasEnded({ orderableUntil, retiresAt }: EndOfSale, now: Date): boolean {
  return [orderableUntil, retiresAt].some((end) => end != null && Date.parse(end) <= now.getTime());
}

/** An alert names a cluster for this number of days before its machine retires. */
export const RETIREMENT_NOTICE_DAYS = 180;
