import type { StoredMachine } from '../../src/market/costs/inputs.ts';

/** A published machine of 2 CPUs and 4 GB without facts, at 0.001 a minute. */
export const storedMachine = (given: Partial<StoredMachine> & { readonly id: number }): StoredMachine => ({
  ...{ name: `m${given.id}`, regionId: 1, providerId: 1, cpu: 2, ram: 4, ramUnit: 'Decimal', bytes: 4e9 },
  ...{ architecture: null, generation: null, cpuKind: null, localDisk: null, network: null },
  ...{ includedTraffic: null, includedIpv4: null, orderableUntil: null, retiresAt: null },
  ...{ price: '0.001', monthlyCap: null, isListed: true, isPublished: true },
  ...given,
});
