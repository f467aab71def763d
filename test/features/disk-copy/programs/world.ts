/** The documents of the program that is killed. Its parent makes the same ones. */
import type { MachineRow, RegionHead } from '../../../../src/snapshot/document/build.ts';
import type { Provenance } from '../../../../src/snapshot/document/document.ts';

export const LIMITS = { bytes: 16_000_000, staleLimitMs: 3_600_000, tokenStaleLimitMs: 900_000 };
export const LINEAGE = '5f0c2f8e-0000-4000-8000-000000000001';
export const REGIONS = 5;

/** Returns a region's document in this version. Its size varies, and the version is the price of each machine. */
export function regionOf(id: number, version: number): [RegionHead, MachineRow[], Provenance] {
  const head = { id, code: `r${id}`, name: `Region ${id}`, version, provider: { id: 1, name: 'Cloud' } };
  const machines = Array.from({ length: 1 + ((version * 37) % 400) }, (_, i) => {
    return { id: id * 1000 + i, name: `m${i}`, ram: 4, cpu: 2, price: version, ramUnit: 'Binary' as const };
  });
  return [head, machines, { sources: ['cloud'], currency: 'USD' }];
}

export const tokenOf = (number: number): string => `token:${number.toString(16).padStart(64, '0')}`;
