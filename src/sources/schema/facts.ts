/** Fields with a fact of a machine. An unreadable fact is unknown: it never rejects the machine. */
import { z } from 'zod';
import { CPU_KINDS } from '../../domain/machine-facts.ts';

const ARCHITECTURES: Readonly<Record<string, string>> = {
  x86: 'x86_64',
  x64: 'x86_64',
  amd64: 'x86_64',
  arm: 'arm64',
  aarch64: 'arm64',
};

const GIB = 1.073741824;
const DISK_UNITS = { GB: 1, GiB: GIB, MiB: GIB / 1024 } as const;

export function architectureNamed(text: string): string | undefined {
  const name = text.toLowerCase();
  return /^[a-z0-9_]{2,32}$/.test(name) ? (ARCHITECTURES[name] ?? name) : undefined;
}

export const architecture = z.string().transform(architectureNamed).optional().catch(undefined);

export const cpuKind = z.enum(CPU_KINDS).optional().catch(undefined);

/** A size of disk, read as GB to the nearest MB. */
export function diskIn(unit: keyof typeof DISK_UNITS) {
  return z
    .number()
    .min(0)
    .max(1e9)
    .transform((size) => gigabytes(size, unit))
    .optional()
    .catch(undefined);
}

export function gigabytes(size: number, unit: keyof typeof DISK_UNITS): number {
  return Math.round(size * DISK_UNITS[unit] * 1000) / 1000;
}

/** Traffic of a month that a price includes, read as GB to the nearest MB. @param unit the bytes of one */
export function trafficIn(unit: number) {
  return z
    .number()
    .min(0)
    .max(1e18 / unit)
    .transform((size) => Math.round((size * unit) / 1e6) / 1000)
    .optional()
    .catch(undefined);
}

/** A rate, read as Mbit/s. @param unit the bit/s of one */
export function networkIn(unit: number) {
  return z
    .number()
    .positive()
    .transform((rate) => Math.round((rate * unit) / 1e6))
    .pipe(z.int32().positive())
    .optional()
    .catch(undefined);
}
