/** Types of terms, other prices and costs. Amounts are in `Answer.currency`, and a month of costs has 730 hours. */
import type { Cluster, Machine, MachineWithFacts, Unit } from './documents.ts';

export type PriceTerm =
  | 'on_demand'
  | 'spot'
  | 'savings_plan_1y'
  | 'savings_plan_3y'
  | 'reserved_1y'
  | 'reserved_3y';

/** The price of a machine in one term, per minute. */
export interface MachineTerm {
  readonly term: PriceTerm;
  /** What the organization pays, with the upfront payment spread over the term. */
  readonly price: number;
  /** What recurs: the price without the upfront payment. */
  readonly recurring_price: number;
  /** Paid once for the whole term; null: nothing. */
  readonly upfront: number | null;
  /** The most that a calendar month costs on demand; null: no cap is known. */
  readonly monthly_cap: number | null;
  readonly since: string | null;
  /** Absent if no entry of the organization's price book applies, and for list prices. */
  readonly price_source?: PriceList;
  /** The list price of the same term, if `price` is an own one. */
  readonly list_price?: number;
  /** With `history`: list prices, the newest first. `to` is null for the price of now. */
  readonly history?: readonly {
    readonly list_price: number;
    readonly upfront: number | null;
    readonly from: string;
    readonly to: string | null;
  }[];
}

export interface MachineTerms extends Pick<Machine, 'id' | 'name' | 'provider' | 'region'> {
  /** The price on demand first. A term that is not sold, or has no known price, is missing. */
  readonly terms: readonly MachineTerm[];
}

export interface TermsQuestion {
  readonly history?: boolean | undefined;
  /** `own` by default. */
  readonly prices?: PriceList | undefined;
}

export interface RegionPrice {
  /** The provider's name for it. */
  readonly name: string;
  /** Recommendations and costs use this one. */
  readonly default: boolean;
  readonly unit: 'GB' | 'GiB' | 'address';
  /** `minute`: a unit costs this each minute. `unit`: it costs this once. */
  readonly per: 'minute' | 'unit';
  /** Units a month that cost nothing; null: all. */
  readonly included: number | null;
  /** `price` is for a unit beyond `from`, in units of a month. */
  readonly tiers: readonly { readonly from: number; readonly price: number }[];
}

/** Prices of a region besides its machines. Null: unknown. */
export interface RegionPrices extends Pick<Machine, 'provider' | 'region'> {
  readonly block_storage: readonly RegionPrice[] | null;
  readonly traffic_out: readonly RegionPrice[] | null;
  readonly ipv4: readonly RegionPrice[] | null;
}

/** `own`: the organization's prices, and list prices where it has none. */
export type PriceList = 'list' | 'own';

export interface PriceQuestion {
  /** `on_demand` by default. */
  readonly term?: PriceTerm | undefined;
  /** `own` by default. */
  readonly prices?: PriceList | undefined;
}

export interface CostQuestion extends PriceQuestion {
  /** The past time of the prices, RFC 3339. The clusters are those of today. */
  readonly at?: string | undefined;
}

export interface CostsQuestion extends CostQuestion {
  /** Clusters per page: 1 to 1,000; 100 by default. */
  readonly limit?: number | undefined;
  /** The `next` of the previous page. */
  readonly cursor?: string | undefined;
}

export interface CostHistoryQuestion extends PriceQuestion {
  /** RFC 3339; the creation of the cluster by default. */
  readonly from?: string | undefined;
  /** RFC 3339; now by default. */
  readonly to?: string | undefined;
}

/** `kind`: the same architecture and kind of CPU where both are known; `size`: any. */
export type Match = 'kind' | 'size';

export interface AlternativesQuestion extends PriceQuestion {
  /** `kind` by default. */
  readonly match?: Match | undefined;
  /** Machines of each list: 1 to 50; 10 by default. */
  readonly limit?: number | undefined;
  /** The least saving of the whole cluster in a month. */
  readonly min_saving?: number | undefined;
}

export interface Amount {
  readonly per_minute: number;
  readonly per_month: number;
}

/** A sum of parts; null if a part is unknown. */
export interface CostSum {
  readonly per_minute: number | null;
  readonly per_month: number | null;
  /** The sums of the known parts. */
  readonly known_per_minute: number;
  readonly known_per_month: number;
  /** False if a part is unknown. */
  readonly complete: boolean;
}

/** The price of one node. Null: unknown. */
export interface NodePrice {
  /** What the organization pays at the term. */
  readonly price: number | null;
  /** The list price of the same term. */
  readonly list_price: number | null;
  readonly price_source: PriceList | null;
  /** The entry of the price book that gave the price. */
  readonly entry: number | null;
  /** The most that a month costs on demand. */
  readonly monthly_cap: number | null;
}

/** A part of a cost. Without a known price the amounts are null, and `reason` says why. */
interface CostPart {
  readonly per_minute: number | null;
  readonly per_month: number | null;
  readonly reason: 'not_listed' | 'no_price' | 'term_not_sold' | 'no_disk_price' | null;
}

export interface CostedMachine extends CostPart, NodePrice {
  readonly id: number;
  readonly name: string | null;
  readonly cpu: number;
  readonly ram: number;
  readonly ram_unit: Unit;
  readonly in_catalogue: boolean;
  /** Nodes: shards × replicas. */
  readonly count: number;
}

export interface CostedDisk extends CostPart {
  readonly type: string;
  /** Of one `price_unit` per minute. */
  readonly price: number | null;
  readonly price_unit: 'GB' | 'GiB';
  readonly size: number;
  readonly unit: Cluster['disks'][number]['unit'];
  readonly count: number;
}

export type CostedCluster = Pick<Cluster, 'slug' | 'name' | 'status' | 'provider' | 'region'>;

interface Answered {
  readonly term: PriceTerm;
  readonly prices: PriceList;
}

export interface ClusterCost extends Answered, CostSum {
  readonly at: string | null;
  readonly cluster: CostedCluster;
  readonly shards: number;
  readonly replicas: number;
  readonly machine: CostedMachine;
  readonly disks: readonly CostedDisk[];
}

export interface CostTotal extends CostSum {
  readonly clusters: number;
}

export interface Costs extends Answered {
  readonly at: string | null;
  readonly total: CostTotal;
  readonly providers: readonly (CostTotal & Pick<Cluster, 'provider'>)[];
  readonly regions: readonly (CostTotal & Pick<Cluster, 'provider' | 'region'>)[];
  /** The most expensive first, by their known parts. */
  readonly clusters: readonly (CostSum &
    Pick<Cluster, 'slug' | 'name' | 'provider' | 'region'> & {
      readonly machine: { readonly id: number; readonly name: string | null };
      readonly nodes: number;
    })[];
  /** The cursor of the next page of `clusters`; null on the last page. */
  readonly next: string | null;
}

export interface CostHistory extends Answered {
  readonly cluster: CostedCluster;
  /** Oldest first. `to` is null for the prices of now. */
  readonly steps: readonly (NodePrice & CostSum & { readonly from: string; readonly to: string | null })[];
}

/** A machine that costs less, compared with that of the cluster. Null: a fact is unknown. */
export interface Alternative extends Amount {
  readonly machine: MachineWithFacts & NodePrice & { readonly price_source: PriceList };
  readonly saving_per_month: number;
  readonly compared: {
    readonly cpu_ratio: number;
    readonly memory_ratio: number;
    readonly same_architecture: boolean | null;
    readonly same_cpu_kind: boolean | null;
    /** GB. */
    readonly local_disk_difference: number | null;
  };
}

/** Each list has the largest saving first. */
export interface Alternatives extends Answered {
  readonly match: Match;
  readonly cluster: CostedCluster;
  readonly machine: CostedMachine;
  readonly same_region: readonly Alternative[];
  readonly same_provider: readonly Alternative[];
  readonly anywhere: readonly Alternative[];
}
