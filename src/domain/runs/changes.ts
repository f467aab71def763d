/** What a run can have done to a machine or a cluster. */

/**
 * In the order in which they are shown. One machine has one of them a run, the first that fits:
 * - `retired`: its source does not list it any more;
 * - `withdrawn`: readers saw it, and it is excluded now;
 * - `sold_out`: readers saw it, and it cannot be ordered now;
 * - `reshaped`: another cpu or memory, and maybe another price;
 * - `repriced`: the source states another price. Another exchange rate is none;
 * - `excluded`: excluded before and after, for another reason;
 * - `changed`: other facts (domain/machines/machine-facts.ts), and nothing else;
 * - `restocked`: it was sold out, and readers see it again;
 * - `published`: excluded until now, and readers see it;
 * - `returned`: it was retired;
 * - `added`: it was in no catalogue before.
 */
export const MACHINE_CHANGES = [
  'retired',
  'withdrawn',
  'sold_out',
  'reshaped',
  'repriced',
  'excluded',
  'changed',
  'restocked',
  'published',
  'returned',
  'added',
] as const;

export type MachineChangeKind = (typeof MACHINE_CHANGES)[number];

/** In the order in which they are shown; `retired`, `returned` and `added` as of a machine. */
export const CLUSTER_CHANGES = ['retired', 'changed', 'returned', 'added'] as const;

export type ClusterChangeKind = (typeof CLUSTER_CHANGES)[number];

/** The name of a region, or of the provider where `region` is null. Before it was there it had none. */
export interface Naming {
  readonly region: string | null;
  readonly before: string | null;
  readonly after: string;
}

/** An exchange rate that a run has stored: units of the currency for one euro, exact. */
export interface RateChange {
  readonly currency: string;
  /** Null for a currency that had none. */
  readonly before: string | null;
  readonly after: string;
}

/** What is kept of a cluster, in the order in which it is shown. */
export const CLUSTER_FIELDS = [
  'name',
  'slug',
  'provider',
  'region',
  'machine',
  'status',
  'shards',
  'replicas',
  'user',
  'disks',
  'created_at',
] as const;

export type ClusterField = (typeof CLUSTER_FIELDS)[number];
