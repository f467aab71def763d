/** The answers about costs and prices. Amounts are in the published currency. */
import type { PriceSource } from '../../../../domain/prices/creation-price.ts';
import type { StoredRegionPrice } from '../../../../domain/prices/region-price.ts';
import type { PriceTerm, StoredTerm, Term } from '../../../../domain/prices/term.ts';

export interface CostShare {
  readonly clusters: number;
  /** Null if a part is unknown. */
  readonly perMonth: number | null;
  /** The sum of the known parts. */
  readonly knownPerMonth: number;
}

export interface CostRow {
  readonly id: number;
  readonly slug: string;
  readonly provider: string;
  readonly region: string;
  readonly machine: { readonly id: number; readonly name: string };
  readonly nodes: number;
  /** Null if a part is unknown. */
  readonly perMonth: number | null;
  /** The sum of the known parts. */
  readonly knownPerMonth: number;
  /** Null if the price is unknown. */
  readonly machinePerMonth: number | null;
  readonly disksPerMonth: number | null;
  /** Which price the machine has; null if it is unknown. */
  readonly priceSource: PriceSource | null;
  /** The cheapest machine of the same region that fits; null if none is cheaper. */
  readonly best: { readonly id: number; readonly name: string; readonly savingPerMonth: number } | null;
}

export interface ClusterCosts extends CostRow {
  readonly currency: string | null;
}

export interface CostsAnswer extends CostShare {
  readonly currency: string | null;
  /** Clusters with a part whose price is unknown. */
  readonly incomplete: number;
  /** If each cluster had its best machine. */
  readonly savingPerMonth: number;
  readonly providers: readonly (CostShare & { readonly id: number; readonly name: string })[];
  readonly regions: readonly (CostShare & { readonly provider: string; readonly code: string })[];
  /** What the clusters of today cost in a month at past prices. */
  readonly history: {
    /** Seconds since 1970. */
    readonly times: readonly number[];
    /** The total first, unless there is one line alone. */
    readonly lines: readonly {
      readonly name: string;
      /** Null while a part is unknown. */
      readonly values: readonly (number | null)[];
      /** The sums of the known parts; null while no machine has a known price. */
      readonly known: readonly (number | null)[];
    }[];
  };
  /** A page of the clusters, the most expensive first. */
  readonly rows: readonly CostRow[];
}

/** The price of a term of a machine, per minute. */
export interface ShownTerm extends Pick<StoredTerm, 'upfront'> {
  readonly term: PriceTerm;
  readonly price: number;
  /** Of a month of 730 hours, with the monthly cap. */
  readonly perMonth: number;
  /** As the source states it; null for on demand, whose history shows it. */
  readonly source: StoredTerm['source'] | null;
}

/** A price that a term had. Instants are RFC 3339; `to` is null for the current one. */
export interface PastTerm {
  readonly term: Term;
  /** Per minute; null if the term was not sold. */
  readonly price: number | null;
  readonly from: string;
  readonly to: string | null;
}

export interface MachineCosts {
  readonly terms: readonly ShownTerm[];
  /** The most that a calendar month costs on demand. */
  readonly monthlyCap: number | null;
  /** The newest first. */
  readonly termHistory: readonly PastTerm[];
  /** Null: the source states none. */
  readonly regionPrices: readonly StoredRegionPrice[] | null;
}
