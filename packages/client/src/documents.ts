/** Types of the API's parameters and answers. Prices are per minute, in `Answer.currency`. */

/** Binary: GiB and TiB; Decimal: GB and TB. */
export type Unit = 'Binary' | 'Decimal';

export interface Machine {
  readonly id: number;
  /** The provider's name for it. */
  readonly name: string;
  /** Memory: a whole number of GiB or GB, depending on `ram_unit`. */
  readonly ram: number;
  readonly cpu: number;
  readonly price: number;
  readonly ram_unit: Unit;
  readonly provider: { readonly id: number; readonly name: string };
  readonly region: { readonly id: number; readonly name: string; readonly code: string };
}

/** A machine in `search`, `recommend`, `changes` and exports. Null: unknown. */
export interface MachineWithFacts extends Machine {
  /** `x86_64`, `arm64` or another name in lower case. */
  readonly architecture: string | null;
  /** The provider's name of the generation. */
  readonly generation: string | null;
  readonly cpu_kind: 'dedicated' | 'shared' | null;
  /** GB (decimal). */
  readonly local_disk: number | null;
  /** Mbit/s. */
  readonly network: number | null;
  /** GB (decimal) of outgoing traffic a month that the price includes. */
  readonly included_traffic: number | null;
  /** Public IPv4 addresses that the price includes. */
  readonly included_ipv4: number | null;
  /** RFC 3339. From then on the machine cannot be ordered. Null: no end is announced. */
  readonly orderable_until: string | null;
  /** RFC 3339. The provider ends the service then. Null: no end is announced. */
  readonly retires_at: string | null;
  /** False if the machine is sold out. Other machines do not have this field. */
  readonly available?: false;
}

type OtherTerm = 'spot' | 'savings_plan_1y' | 'savings_plan_3y' | 'reserved_1y' | 'reserved_3y';

/** The field that a machine has in addition if the question has a `term` other than `on_demand`: its price is of this term. */
export interface TermFields {
  readonly term?: OtherTerm;
}

export interface Cluster {
  readonly name: string;
  readonly slug: string;
  readonly region: { readonly name: string; readonly code: string };
  readonly provider: { readonly id: number; readonly name: string };
  /** Open-ended: Creating, Active, Stopped, … */
  readonly status: string;
  readonly shards: number;
  readonly replicas: number;
  readonly user: { readonly first_name: string; readonly last_name: string };
  readonly machine: {
    readonly ram: number;
    readonly cpu: number;
    readonly id: number;
    readonly ram_unit: Unit;
  };
  readonly disks: readonly {
    readonly type: { readonly name: string; readonly price: number; readonly unit: Unit };
    readonly size: number;
    readonly unit: 'GB' | 'TB' | 'GiB' | 'TiB';
    readonly autoscaling: boolean;
  }[];
  /** UTC, six fractional digits, no zone designator: a `Date` would lose the microseconds. */
  readonly created_at: string;
}

export interface Provider {
  readonly id: number;
  readonly name: string;
  readonly regions: readonly { readonly id: number; readonly name: string; readonly code: string }[];
}

export interface Price {
  readonly price: number;
  /** RFC 3339. */
  readonly from: string;
  /** Null for the current price. */
  readonly to: string | null;
}

/** Conditions that a machine must meet. */
export type Continent = 'africa' | 'asia' | 'europe' | 'north_america' | 'oceania' | 'south_america';

export interface MachineFilter {
  /**
   * The unit of memory in the request. `AsSold` (default): each machine in its own unit, so 8 GB and 8 GiB both match 8.
   * `Binary` (GiB) or `Decimal` (GB): all machines in this unit, compared in bytes.
   */
  readonly ram_unit?: 'AsSold' | Unit | undefined;
  /** `list`: list prices. `own` by default: own prices of the organization, where it has them. */
  readonly prices?: 'own' | 'list' | undefined;
  /** Ids, up to 100. */
  readonly provider?: number | readonly number[] | undefined;
  readonly region?: number | readonly number[] | undefined;
  /** Countries of regions, ISO 3166-1 alpha-2, e.g. `DE`. */
  readonly country?: string | readonly string[] | undefined;
  readonly continent?: Continent | readonly Continent[] | undefined;
  readonly architecture?: string | undefined;
  readonly cpu_kind?: 'dedicated' | 'shared' | undefined;
  /** The term whose prices count; `on_demand` by default. Machines without it are not in the answer. */
  readonly term?: 'on_demand' | OtherTerm | undefined;
  /** `all`: include sold-out machines. `now` by default. */
  readonly available?: 'now' | 'all' | undefined;
}

type SortKey = 'price' | 'price_per_cpu' | 'price_per_ram' | 'cpu' | 'ram';

export interface SearchQuestion<Field extends keyof MachineWithFacts = keyof MachineWithFacts>
  extends MachineFilter {
  readonly min_cpu?: number | undefined;
  readonly max_cpu?: number | undefined;
  readonly min_ram?: number | undefined;
  readonly max_ram?: number | undefined;
  readonly min_ram_per_cpu?: number | undefined;
  readonly max_ram_per_cpu?: number | undefined;
  /** Per minute. */
  readonly max_price?: number | undefined;
  /** A part of the name; case does not matter. */
  readonly name?: string | undefined;
  /** `price` by default. A leading `-` sorts in descending order. */
  readonly sort?: SortKey | `-${SortKey}` | undefined;
  /** Machines per page: 1 to 500; 50 by default. */
  readonly limit?: number | undefined;
  /** The `next` of the previous page. */
  readonly cursor?: string | undefined;
  /** The fields of each machine; all by default. */
  readonly fields?: readonly Field[] | undefined;
}

/** Present if the organization has own prices now, and the question is not for list prices. */
export interface PriceSource {
  /** Whether `price` is an own price or the list price. */
  readonly price_source?: 'own' | 'list';
  /** The list price of the same term, if `price` is an own price. */
  readonly list_price?: number;
}

export interface SearchPage<Found = MachineWithFacts> {
  readonly machines: readonly (Found & PriceSource & TermFields)[];
  /** The cursor of the next page; null on the last page. */
  readonly next: string | null;
  /** The unit of memory in the request. */
  readonly ram_unit: 'AsSold' | Unit;
  /** Identifies the searched catalogue. */
  readonly version: string;
  /** The catalogue has changed since the previous page. This page starts after the last machine of that page. */
  readonly moved: boolean;
}

export interface RecommendQuestion extends MachineFilter {
  readonly cpu: number;
  readonly ram: number;
  /** Hours of use; 730 (a month) by default. */
  readonly hours?: number | undefined;
  /** Required local disk, in GB. */
  readonly disk?: number | undefined;
  /** Required block storage, in GB. */
  readonly storage?: number | undefined;
  /** Outgoing traffic a month, in GB. */
  readonly traffic?: number | undefined;
  /** Required public IPv4 addresses. */
  readonly ipv4?: number | undefined;
}

export interface Recommendations {
  /** The cheapest suitable machine of each provider, cheapest first. */
  readonly recommendations: readonly {
    readonly machine: MachineWithFacts & PriceSource & TermFields;
    readonly hours: number;
    /** The price of all hours, in `Answer.currency`; null if the price of a part is unknown. */
    readonly total: number | null;
    /** The sum of the known parts. */
    readonly known_total: number;
    /** False if the price of a part is unknown. */
    readonly complete: boolean;
    /** Null: the price is unknown. */
    readonly breakdown: {
      readonly machine: number | null;
      readonly storage: number | null;
      readonly traffic: number | null;
      readonly ipv4: number | null;
    };
    /** The calculation of `total`, in words. */
    readonly computed: string;
  }[];
  /** The unit of memory in the request. */
  readonly ram_unit: 'AsSold' | Unit;
  readonly version: string;
}

interface ChangeOf<Type extends string> {
  readonly type: Type;
  /** The cursor after this change. */
  readonly id: string;
  /** RFC 3339. */
  readonly at: string;
}

interface MachineGone<Type extends string> extends ChangeOf<Type> {
  readonly machine_id: number;
  readonly provider_id: number;
  readonly region_id: number;
}

export type Change =
  | (ChangeOf<'machine.added'> & { readonly machine: MachineWithFacts })
  | (ChangeOf<'machine.repriced'> & {
      readonly machine: MachineWithFacts;
      readonly before: number;
      readonly after: number;
    })
  | (ChangeOf<'machine.changed'> & { readonly machine: MachineWithFacts })
  /** Only with `available: 'all'`: the machine is sold out, or can be ordered again. */
  | (ChangeOf<'machine.sold_out'> & { readonly machine: MachineWithFacts })
  | (ChangeOf<'machine.restocked'> & { readonly machine: MachineWithFacts })
  /** The machine has left the published catalogue. */
  | MachineGone<'machine.withdrawn'>
  /** The machine has left the published catalogue because its source no longer lists it. */
  | MachineGone<'machine.retired'>
  | (ChangeOf<'cluster.created'> & { readonly cluster: Cluster })
  | (ChangeOf<'cluster.changed'> & { readonly cluster: Cluster })
  | (ChangeOf<'cluster.deleted'> & { readonly slug: string })
  /** Something about all machines has changed, e.g. their currency: list everything again. */
  | ChangeOf<'catalogue.changed'>;

export interface ChangePage {
  readonly changes: readonly Change[];
  readonly next: string;
  readonly more: boolean;
}

type ExportFormat = 'ndjson' | 'csv' | 'parquet' | 'sqlite';
export type ExportName =
  | `machines.${ExportFormat}`
  | `prices.${ExportFormat}`
  /** Its columns may change with any release. */
  | 'opencost.csv';

export interface ExportFile {
  readonly file: ExportName;
  readonly version: string;
  readonly bytes: number;
  readonly rows: number;
  /** RFC 3339. */
  readonly created_at: string;
  readonly etag: string;
}
