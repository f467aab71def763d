import type { Software } from './engine.ts';
import type { MemoryUnit } from './machine.ts';
import type { SourcePrice } from './prices/price.ts';

export type DiskSizeUnit = 'GB' | 'TB' | 'GiB' | 'TiB';

/** A cluster of the HTTP contract. */
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

/** A disk as a control plane describes it. The source's configuration may supply the absent fields. */
export interface DescribedDisk {
  /** `name` is a storage class or disk type in the source's own terms. */
  readonly type: {
    readonly name?: string | undefined;
    readonly price?: SourcePrice;
    readonly unit?: MemoryUnit;
  };
  readonly size: number;
  readonly unit: DiskSizeUnit;
  readonly autoscaling?: boolean;
}

/** The same fields, none of them absent or undefined. */
type Complete<T> = { readonly [Field in keyof T]-?: Exclude<T[Field], undefined> };

/** A disk that is ready to be stored. */
export interface ReportedDisk extends Complete<DescribedDisk> {
  readonly type: Complete<DescribedDisk['type']>;
}

/** The machine of a cluster before the search in the store: a machine type, a complete shape, or both. */
export type ReportedMachine =
  | {
      readonly name: string;
      readonly cpu?: undefined;
      readonly ram?: undefined;
      readonly ramUnit?: undefined;
    }
  | { readonly name?: string; readonly cpu: number; readonly ram: number; readonly ramUnit: MemoryUnit };

/** A cluster as a control plane describes it. The source's configuration may supply the absent fields. */
export interface DescribedCluster {
  /** The organization's slug, if the source knows Fleetbook's organizations. */
  readonly organization?: string | undefined;
  /** The owner in the source's own terms (namespace, label, project). The configuration maps it to a slug. */
  readonly tenant?: string | undefined;
  /** Identifies the cluster at its source permanently: a uid if there is one. */
  readonly key: string;
  readonly name: string;
  /** Absent: derived from the name. */
  readonly slug?: string | undefined;
  /** The source's own spelling, e.g. `aws`. */
  readonly provider?: string | undefined;
  /** The catalogue's name of that provider, if it differs: `GCP` for `google`. */
  readonly providerName?: string | undefined;
  /** Without `name`, the code is the name. */
  readonly region?: { readonly code: string; readonly name?: string } | undefined;
  readonly status: string;
  readonly shards: number;
  readonly replicas: number;
  readonly user?: { readonly firstName: string; readonly lastName: string } | undefined;
  /** `name` is an instance type, plan or node label in the source's own terms. */
  readonly machine?: ReportedMachine | undefined;
  /** Absent if the source does not describe disks; empty if the cluster has none. */
  readonly disks?: readonly DescribedDisk[] | undefined;
  readonly software?: Software | undefined;
  /** UTC, `YYYY-MM-DDTHH:MM:SS.ffffff`: a text, because a Date drops the microseconds. */
  readonly createdAt: string;
}

/** A cluster that is ready to be stored, before the search for its provider, region and machine. */
export interface ReportedCluster
  extends Complete<
    Omit<DescribedCluster, 'tenant' | 'slug' | 'providerName' | 'region' | 'disks' | 'software'>
  > {
  readonly slug?: string;
  readonly software?: Software;
  readonly region: { readonly code: string; readonly name: string };
  readonly disks: readonly ReportedDisk[];
}
