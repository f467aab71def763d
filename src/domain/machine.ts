import type { FactsDocument, MachineFacts } from './machine-facts.ts';
import type { SourcePrice } from './prices/price.ts';
import type { OfferedTerms } from './prices/term.ts';

/** `Binary` counts GiB (2^30 bytes), `Decimal` counts GB (10^9 bytes). */
export type MemoryUnit = 'Binary' | 'Decimal';

export interface Offer {
  /** The provider's own code. */
  readonly regionCode: string;
  /** The provider's own name. Region code and name identify the machine. */
  readonly name: string;
  readonly cpu: number;
  /** Number of `ramUnit` units. A fraction is legal here and excludes the machine. */
  readonly ram: number;
  readonly ramUnit: MemoryUnit;
  readonly price: SourcePrice;
  /** The prices of other terms. */
  readonly terms?: OfferedTerms;
  /** The most that a calendar month of it costs on demand, a plain decimal in the currency of `price`. */
  readonly monthlyCap?: string;
  /** An absent fact is unknown, even if an earlier run knew it. */
  readonly facts?: Partial<MachineFacts>;
  /** The source's own reason why the machine cannot be ordered as an ordinary one today. */
  readonly excluded?: ExclusionReason;
}

/** A machine of the HTTP contract. `price` is per minute. */
export interface MachineDocument {
  id: number;
  name: string;
  ram: number;
  cpu: number;
  price: number;
  ram_unit: MemoryUnit;
  provider: { id: number; name: string };
  region: { id: number; name: string; code: string };
}

export interface MachineFactsDocument extends MachineDocument, FactsDocument {
  /** False for a sold-out machine; absent for all others. */
  available?: false;
}

/** Units of memory in sources. A bare "MB" is ambiguous (Linode's 1024 "MB" is one GiB), so each adapter names the unit. */
export type SourceMemoryUnit = 'GB' | 'GiB' | 'MiB' | 'bytes';

const PER_GIB = { GiB: 1, MiB: 1024, bytes: 1024 ** 3 } as const;

/** Returns memory in GB or GiB, exact. It never converts between the two: the contract keeps the unit of the sale. */
export function memory(amount: number, sourceUnit: SourceMemoryUnit): Pick<Offer, 'ram' | 'ramUnit'> {
  if (sourceUnit === 'GB') return { ram: amount, ramUnit: 'Decimal' };
  return { ram: amount / PER_GIB[sourceUnit], ramUnit: 'Binary' };
}

/**
 * Returns the whole memory that a fractional one probably means: 15.625 GiB are 16,000 MiB, which a list of decimal sizes states
 * for 16 GB. Undefined if the memory is whole, or no whole one after the same division by 1000.
 */
export function meantMemory({ ram, ramUnit }: Pick<Offer, 'ram' | 'ramUnit'>): string | undefined {
  const isBinary = ramUnit === 'Binary';
  const meant = isBinary ? (ram * 1024) / 1000 : (ram * 1000) / 1024;
  // 16.384 × 1000 is a little more than 16384.
  const whole = Math.round(meant);
  if (Number.isInteger(ram) || whole < 1 || Math.abs(meant - whole) > 1e-9 * whole) return undefined;
  return `${whole} ${isBinary ? 'GB' : 'GiB'}`;
}

/** Returns bytes in GB if they are a multiple of 10^9, else in GiB: a provider may count machines in GiB and databases in GB. */
export function memoryOfBytes(bytes: number): Pick<Offer, 'ram' | 'ramUnit'> {
  return bytes % 1e9 === 0 ? memory(bytes / 1e9, 'GB') : memory(bytes, 'bytes');
}

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
