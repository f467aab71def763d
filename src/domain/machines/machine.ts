import type { SourcePrice } from '../prices/price.ts';
import type { ExclusionReason } from './exclusion.ts';
import type { MachineFacts } from './machine-facts.ts';
import type { MemoryUnit } from './memory.ts';

/** One machine type in one region, with its price there: what a provider adapter reports. */
export interface Offer {
  /** The region's code as the provider defines it. */
  readonly regionCode: string;
  /** The machine's name as the provider names it; with the region it is the machine's natural key. */
  readonly name: string;
  readonly cpu: number;
  /** Count of `ramUnit` units; a fraction is legal here and excludes the machine. */
  readonly ram: number;
  readonly ramUnit: MemoryUnit;
  readonly price: SourcePrice;
  /** What else the source says of it. What is left out is unknown, also where an earlier run knew it. */
  readonly facts?: Partial<MachineFacts>;
  /** Why the source itself says that this machine cannot be ordered as an ordinary one today. */
  readonly excluded?: ExclusionReason;
}

/** The machine document of the HTTP contract. `price` is per minute. */
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

/** The machine document with the facts of the machine. */
export interface MachineFactsDocument extends MachineDocument {
  architecture: string | null;
  generation: string | null;
  cpu_kind: MachineFacts['cpuKind'];
  /** GB (10^9 bytes). */
  local_disk: number | null;
  /** Mbit/s. */
  network: number | null;
  /** False of a machine that is sold out; a machine that can be ordered has no such field. */
  available?: false;
}
