import type { MemoryUnit } from '../machines/memory.ts';
import type { SourcePrice } from '../prices/price.ts';

export type DiskSizeUnit = 'GB' | 'TB' | 'GiB' | 'TiB';

/** The cluster document of the HTTP contract. */
export interface ClusterDocument {
  name: string;
  slug: string;
  region: { name: string; code: string };
  provider: { id: number; name: string };
  status: string;
  shards: number;
  replicas: number;
  user: { first_name: string; last_name: string };
  machine: { ram: number; cpu: number; id: number; ram_unit: MemoryUnit };
  disks: {
    type: { name: string; price: number; unit: MemoryUnit };
    size: number;
    unit: DiskSizeUnit;
    autoscaling: boolean;
  }[];
  /** UTC, six fractional digits, no zone designator. */
  created_at: string;
}

/** A disk as a control plane reports it. */
export interface ReportedDisk {
  readonly type: { readonly name: string; readonly price: SourcePrice; readonly unit: MemoryUnit };
  readonly size: number;
  readonly unit: DiskSizeUnit;
  readonly autoscaling: boolean;
}

/**
 * The machine of a cluster, before it is found in the store: `name` is the provider's machine type, where that is known;
 * the shape stands whole or not at all.
 */
export type ReportedMachine =
  | {
      readonly name: string;
      readonly cpu?: undefined;
      readonly ram?: undefined;
      readonly ramUnit?: undefined;
    }
  | { readonly name?: string; readonly cpu: number; readonly ram: number; readonly ramUnit: MemoryUnit };

/** A cluster as it is to be stored, before its provider, region and machine are found in the store. */
export interface ReportedCluster {
  /** The organization's slug. */
  readonly organization: string;
  /** What identifies the cluster at its source for good: a uid where there is one. */
  readonly key: string;
  readonly name: string;
  /** Given by the source; otherwise derived from the name. */
  readonly slug?: string;
  readonly provider: string;
  readonly region: { readonly code: string; readonly name: string };
  readonly status: string;
  readonly shards: number;
  readonly replicas: number;
  readonly user: { readonly firstName: string; readonly lastName: string };
  readonly machine: ReportedMachine;
  readonly disks: readonly ReportedDisk[];
  /** UTC, `YYYY-MM-DDTHH:MM:SS.ffffff`: text, since a Date would drop the microseconds. */
  readonly createdAt: string;
}

/** A disk as far as a control plane describes it; what it does not say, its source's configuration may. */
export interface DescribedDisk {
  /** `name` is a storage class or disk type in the source's own words. */
  readonly type: { readonly name?: string; readonly price?: SourcePrice; readonly unit?: MemoryUnit };
  readonly size: number;
  readonly unit: DiskSizeUnit;
  readonly autoscaling?: boolean;
}

/** A cluster as far as a control plane describes it; what it does not say, its source's configuration may. */
export interface DescribedCluster {
  /** The organization's slug, where the source knows Fleetbook's organizations. */
  readonly organization?: string;
  /** Whose it is in the source's own words (namespace, label, project), which the configuration maps to a slug. */
  readonly tenant?: string;
  /** What identifies the cluster at its source for good: a uid where there is one. */
  readonly key: string;
  readonly name: string;
  readonly slug?: string;
  /** As the source spells it, e.g. `aws`. */
  readonly provider?: string;
  /** What the catalogue calls that provider, where the source's word is another: `GCP` for `google`. */
  readonly providerName?: string;
  /** Without `name`, the code is its name. */
  readonly region?: { readonly code: string; readonly name?: string };
  readonly status: string;
  readonly shards: number;
  readonly replicas: number;
  readonly user?: { readonly firstName: string; readonly lastName: string };
  /** `name` is an instance type, plan or node label in the source's own words; the shape stands whole or not at all. */
  readonly machine?: ReportedMachine;
  /** Absent where the source says nothing of disks; an empty list says that there are none. */
  readonly disks?: readonly DescribedDisk[];
  readonly createdAt: string;
}
