/** Types of the API's answers, like in its OpenAPI document. Prices are per minute, in `Answer.currency`. */

/** Binary: GiB and TiB; Decimal: GB and TB. */
export type Unit = 'Binary' | 'Decimal';

export interface Machine {
  readonly id: number;
  /** As the provider names it. */
  readonly name: string;
  /** Memory: a whole number of GiB or GB, as `ram_unit` says. */
  readonly ram: number;
  readonly cpu: number;
  readonly price: number;
  readonly ram_unit: Unit;
  readonly provider: { readonly id: number; readonly name: string };
  readonly region: { readonly id: number; readonly name: string; readonly code: string };
}

/** A machine in `search`, `recommend`, `changes` and exports. Null: unknown. */
export interface MachineWithFacts extends Machine {
  /** `x86_64`, `arm64`, or another in lower case. */
  readonly architecture: string | null;
  /** As the provider states it. */
  readonly generation: string | null;
  readonly cpu_kind: 'dedicated' | 'shared' | null;
  /** GB (decimal). */
  readonly local_disk: number | null;
  /** Mbit/s. */
  readonly network: number | null;
  /** False of a machine that is sold out; a machine that can be ordered has no such field. */
  readonly available?: false;
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
  /** Null for the price of today. */
  readonly to: string | null;
}

/** What a machine must be. */
export interface MachineFilter {
  /**
   * How sizes count memory. `AsSold`, unless given: each machine in its own unit, so that 8 GB and 8 GiB are both 8.
   * `Binary` (GiB) and `Decimal` (GB): every machine in that unit, compared in bytes.
   */
  readonly ram_unit?: 'AsSold' | Unit | undefined;
  /** Ids, up to 100. */
  readonly provider?: number | readonly number[] | undefined;
  readonly region?: number | readonly number[] | undefined;
  readonly architecture?: string | undefined;
  readonly cpu_kind?: 'dedicated' | 'shared' | undefined;
  /** `all`: machines that are sold out as well. `now` unless given. */
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
  /** A part of the name, in any case. */
  readonly name?: string | undefined;
  /** `price` unless given; `-` in front: descending. */
  readonly sort?: SortKey | `-${SortKey}` | undefined;
  /** Machines on a page: 1 to 500, 50 unless given. */
  readonly limit?: number | undefined;
  /** `next` of the page before. */
  readonly cursor?: string | undefined;
  /** The fields of each machine; all by default. */
  readonly fields?: readonly Field[] | undefined;
}

export interface SearchPage<Found = MachineWithFacts> {
  readonly machines: readonly Found[];
  /** The next page's cursor; null on the last. */
  readonly next: string | null;
  /** How the question counted memory. */
  readonly ram_unit: 'AsSold' | Unit;
  /** Names the catalogue that was searched. */
  readonly version: string;
  /** True where the catalogue has changed since the page before: this one goes on behind that one's last place. */
  readonly moved: boolean;
}

export interface RecommendQuestion extends MachineFilter {
  readonly cpu: number;
  readonly ram: number;
  /** 730, a month, unless given. */
  readonly hours?: number | undefined;
  /** GB of local disk that the machine must have. */
  readonly disk?: number | undefined;
}

export interface Recommendations {
  /** The cheapest that fits of each provider, the cheapest first. */
  readonly recommendations: readonly {
    readonly machine: MachineWithFacts;
    readonly hours: number;
    /** Of all the hours. */
    readonly total: number;
    /** How `total` comes about, in words. */
    readonly computed: string;
  }[];
  /** How the question counted memory. */
  readonly ram_unit: 'AsSold' | Unit;
  readonly version: string;
}

interface ChangeOf<Type extends string> {
  readonly type: Type;
  /** A cursor: `after` this change. */
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
  /** Only with `available: 'all'`: it cannot be ordered now, or it can be ordered again. */
  | (ChangeOf<'machine.sold_out'> & { readonly machine: MachineWithFacts })
  | (ChangeOf<'machine.restocked'> & { readonly machine: MachineWithFacts })
  /** Left the published catalogue. */
  | MachineGone<'machine.withdrawn'>
  /** The same, since its source lists it no more. */
  | MachineGone<'machine.retired'>
  | (ChangeOf<'cluster.created'> & { readonly cluster: Cluster })
  | (ChangeOf<'cluster.changed'> & { readonly cluster: Cluster })
  | (ChangeOf<'cluster.deleted'> & { readonly slug: string })
  /** Something that concerns all machines, such as their currency: list again. */
  | ChangeOf<'catalogue.changed'>;

export interface ChangePage {
  readonly changes: readonly Change[];
  readonly next: string;
  readonly more: boolean;
}

type ExportFormat = 'ndjson' | 'csv' | 'parquet' | 'sqlite';
export type ExportName = `machines.${ExportFormat}` | `prices.${ExportFormat}`;

export interface ExportFile {
  readonly file: ExportName;
  readonly version: string;
  readonly bytes: number;
  readonly rows: number;
  /** RFC 3339. */
  readonly created_at: string;
  readonly etag: string;
}
