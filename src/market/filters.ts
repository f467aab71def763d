/** The filters and the order of a search of the catalogue in memory. */
import type { MachineFacts } from '../domain/machine-facts.ts';
import type { Continent } from '../domain/region-country.ts';

export const SORT_FIELDS = ['price', 'price_per_cpu', 'price_per_ram', 'cpu', 'ram'] as const;

export interface Sort {
  readonly by: (typeof SORT_FIELDS)[number];
  readonly descending: boolean;
}

/** Limits are inclusive. Undefined: no filter. */
export interface Filters {
  readonly minCpu?: number | undefined;
  readonly maxCpu?: number | undefined;
  /** True: memory is compared as sold, so 8 GB and 8 GiB are both 8. Otherwise in bytes. */
  readonly isRamAsSold?: boolean | undefined;
  /** In thousandths of a byte, or of a GB or GiB as sold, so that three decimals are exact. */
  readonly minRam?: number | undefined;
  readonly maxRam?: number | undefined;
  /** The same for each cpu. */
  readonly minRamPerCpu?: number | undefined;
  readonly maxRamPerCpu?: number | undefined;
  /** Per minute. */
  readonly maxPrice?: number | undefined;
  /** GB of local disk. A machine with an unknown disk does not match. */
  readonly minDisk?: number | undefined;
  readonly providers?: readonly number[] | undefined;
  readonly regions?: readonly number[] | undefined;
  /** ISO 3166-1 alpha-2, upper case. A region whose country is unknown does not match. */
  readonly countries?: readonly string[] | undefined;
  readonly continents?: readonly Continent[] | undefined;
  /** Part of the name, case-insensitive. Not empty, without line feeds. */
  readonly name?: string | undefined;
  readonly architecture?: string | undefined;
  readonly cpuKind?: MachineFacts['cpuKind'] | undefined;
  /** Includes sold-out machines. */
  readonly withSoldOut?: true | undefined;
}

/** A place in an order: behind the machine with this sort key, price and id. */
export interface Position {
  readonly key: number;
  readonly price: number;
  readonly id: number;
}
