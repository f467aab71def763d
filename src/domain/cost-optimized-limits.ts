import type { ExclusionReason } from './exclusion.ts';

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
