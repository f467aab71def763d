import type { MachineFacts } from './machine-facts.ts';

/** Reasons to leave a stored machine out of the published catalogue, with the machine as the subject. Only operators see them. */
const MEANINGS = {
  discontinued: 'its provider no longer sells it',
  sold_out: 'it is sold out: its provider lists it, and it cannot be ordered now',
  unavailable: 'its provider lists it and does not sell it there',
  accelerated: 'it has a GPU or another accelerator',
  licensed: 'its price includes a licence',
  zero_price: 'its price is zero',
  no_exchange_rate: 'its price has no exchange rate; give one in CATALOGUE_RATES',
  fractional_memory: 'its memory is no whole number of GB or GiB',
  over_cpu_limit: 'it has more than 32 cpu',
  over_ram_limit: 'it has more than 128 GB or GiB of memory',
  over_ram_per_cpu_limit: 'it has more than 8 GB or GiB of memory for each cpu',
  unlisted: 'no catalogue lists it; only clusters name it',
};

export type ExclusionReason = keyof typeof MEANINGS;

/** Explanations for operators. A reason of another release has none. */
export const EXCLUSION_MEANINGS: Readonly<Record<string, string>> = MEANINGS;

/** Returns true for reasons of stock; all others take precedence. A published `unavailable` machine is stored as `sold_out`. */
export function isStock(reason: ExclusionReason | undefined): boolean {
  return reason === 'sold_out' || reason === 'unavailable';
}

/** The limits of a published machine. Values on the boundary are inside. */
const COST_OPTIMIZED_LIMITS = { cpu: 32, ram: 128, ramPerCpu: 8 } as const;

/**
 * Returns the first limit that a machine breaks, or undefined.
 * @param machine `ram` counts the machine's own unit, see docs/decisions/0028-one-currency-and-the-own-unit.md
 */
export function limitBroken(machine: { cpu: number; ram: number }): ExclusionReason | undefined {
  if (!Number.isInteger(machine.ram)) return 'fractional_memory';
  if (machine.cpu > COST_OPTIMIZED_LIMITS.cpu) return 'over_cpu_limit';
  if (machine.ram > COST_OPTIMIZED_LIMITS.ram) return 'over_ram_limit';
  if (machine.ram > COST_OPTIMIZED_LIMITS.ramPerCpu * machine.cpu) return 'over_ram_per_cpu_limit';
  return undefined;
}

type EndOfSale = Partial<Pick<MachineFacts, 'orderableUntil' | 'retiresAt'>>;

/** Providers write this year for a day that never comes. */
const NEVER = /^9999-\d{2}-\d{2}/;

/** True for a date, or an RFC 3339 time, that means never. */
export function isNever(time: string): boolean {
  return NEVER.test(time);
}

/**
 * Returns whether a machine has left the catalogue: once it can no longer be ordered, not when its provider announces that.
 * `END` in src/sync is the same rule for stored machines.
 * A machine that its provider retires can be ordered until then, unless the provider states an earlier end of its sale.
 */
export function hasEnded({ orderableUntil, retiresAt }: EndOfSale, now: Date): boolean {
  return [orderableUntil, retiresAt].some((end) => end != null && Date.parse(end) <= now.getTime());
}

/** An alert names a cluster for this number of days before its machine retires. */
export const RETIREMENT_NOTICE_DAYS = 180;
