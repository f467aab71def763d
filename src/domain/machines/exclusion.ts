/**
 * Why a machine that a source reports is not in the published catalogue. Stored with the machine, for operators; readers
 * never see it.
 */
export const EXCLUSION_REASONS = [
  'deprecated',
  'sold_out',
  'unavailable',
  'accelerated',
  'licensed',
  'zero_price',
  'no_exchange_rate',
  'fractional_memory',
  'over_cpu_limit',
  'over_ram_limit',
  'over_ram_per_cpu_limit',
  'unlisted',
] as const;

export type ExclusionReason = (typeof EXCLUSION_REASONS)[number];

/**
 * Reasons that say that a machine cannot be ordered, and nothing against the machine itself: every other reason goes
 * before them. A machine that readers saw and that becomes `unavailable` is `sold_out` (db/sync/catalogue-compare.ts).
 */
export function isStock(reason: ExclusionReason | undefined): boolean {
  return reason === 'sold_out' || reason === 'unavailable';
}

/** What each reason means, for an operator. */
export const EXCLUSION_MEANINGS: Readonly<Record<ExclusionReason, string>> = {
  deprecated: 'its provider has announced its end',
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

/** The cost-optimized limits; values on the boundary are inside. */
const COST_OPTIMIZED_LIMITS = { cpu: 32, ram: 128, ramPerCpu: 8 } as const;

/**
 * The first limit that a machine breaks, undefined when it is within all of them. `ram` is compared in the
 * machine's own unit (docs/decisions/0003-limits-in-the-own-unit.md).
 */
export function limitBroken(machine: { cpu: number; ram: number }): ExclusionReason | undefined {
  if (!Number.isInteger(machine.ram)) return 'fractional_memory';
  if (machine.cpu > COST_OPTIMIZED_LIMITS.cpu) return 'over_cpu_limit';
  if (machine.ram > COST_OPTIMIZED_LIMITS.ram) return 'over_ram_limit';
  if (machine.ram > COST_OPTIMIZED_LIMITS.ramPerCpu * machine.cpu) return 'over_ram_per_cpu_limit';
  return undefined;
}
