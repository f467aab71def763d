/** Plans of managed databases, as the API answers them. */
import type { Continent, Machine } from './documents.ts';

/** A null field is unknown. */
export interface DatabasePlan extends Pick<Machine, 'id' | 'provider' | 'region'> {
  /** For example `postgresql`. */
  readonly engine: string;
  /** The provider's name for it. */
  readonly name: string;
  /** Nodes that the price includes. Null: the price is that of one node. */
  readonly nodes: number | null;
  /** Virtual CPUs of one node. */
  readonly cpu: number | null;
  /** Memory of one node, in `ram_unit`. */
  readonly ram: number | null;
  readonly ram_unit: Machine['ram_unit'] | null;
  /** GB of storage of one node that the price includes. */
  readonly storage: number | null;
  /** Per minute. */
  readonly price: number;
  /** For 730 hours. */
  readonly price_per_month: number;
}

export interface DatabaseWithHistory extends DatabasePlan {
  /** The newest first. `price` is null if no exchange rate was known; `to` is null for the current price. */
  readonly history?: readonly {
    readonly price: number | null;
    readonly from: string;
    readonly to: string | null;
  }[];
}

export interface DatabasePage {
  readonly databases: readonly DatabasePlan[];
  /** The cursor of the next page; null on the last page. */
  readonly next: string | null;
}

export interface DatabasesQuestion {
  readonly provider?: readonly number[] | undefined;
  readonly region?: readonly number[] | undefined;
  /** Countries of regions, ISO 3166-1 alpha-2, e.g. `DE`. */
  readonly country?: readonly string[] | undefined;
  readonly continent?: readonly Continent[] | undefined;
  readonly engine?: readonly string[] | undefined;
  readonly min_cpu?: number | undefined;
  /** As sold: 8 GB and 8 GiB are both 8. */
  readonly min_ram?: number | undefined;
  /** `price` by default: the cheapest first. */
  readonly sort?: 'price' | '-price' | undefined;
  /** Plans per page: 1 to 500; 50 by default. */
  readonly limit?: number | undefined;
  /** The `next` of the previous page. */
  readonly cursor?: string | undefined;
}
