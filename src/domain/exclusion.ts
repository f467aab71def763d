/**
 * Why a machine that a source reports is not in the published catalogue. Stored beside the machine, so that an
 * operator can list it; readers never see it.
 */
export const EXCLUSION_REASONS = [
  'deprecated',
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
