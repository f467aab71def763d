import type { MemoryUnit } from './memory.ts';
import type { SourcePrice } from './price.ts';

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

/** A cluster as a control plane reports it, before its provider, region and machine are found in the store. */
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
  /** `name` is the provider's machine type where the source knows it. */
  readonly machine: {
    readonly name?: string;
    readonly cpu: number;
    readonly ram: number;
    readonly ramUnit: MemoryUnit;
  };
  readonly disks: readonly ReportedDisk[];
  /** UTC, `YYYY-MM-DDTHH:MM:SS.ffffff`: text, since a Date would drop the microseconds. */
  readonly createdAt: string;
}
