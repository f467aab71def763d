/** `Binary` counts GiB (2^30 bytes), `Decimal` counts GB (10^9 bytes). */
export type MemoryUnit = 'Binary' | 'Decimal';

/**
 * How a source states memory. A bare "MB" in a provider's API is not a unit that can be trusted: Linode's
 * 1024 "MB" is one GiB, so each adapter says which one it means.
 */
export type SourceMemoryUnit = 'GB' | 'GiB' | 'MiB' | 'bytes';

export interface Memory {
  /** Count of `unit`, exact; whole for every machine that can be published. */
  readonly ram: number;
  readonly unit: MemoryUnit;
}

const PER_GIB: Record<Exclude<SourceMemoryUnit, 'GB'>, number> = { GiB: 1, MiB: 1024, bytes: 1024 ** 3 };

/**
 * Memory in GB or GiB, from the source's own figure. Never converts between the two: the contract keeps a
 * machine in the unit in which it is sold.
 */
export function memory(amount: number, sourceUnit: SourceMemoryUnit): Memory {
  if (sourceUnit === 'GB') return { ram: amount, unit: 'Decimal' };
  return { ram: amount / PER_GIB[sourceUnit], unit: 'Binary' };
}
