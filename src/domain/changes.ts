/** What a run changes. */

/**
 * Kinds of changes of a machine, in the order of every display. A run records the first kind that applies:
 * - `retired`: its source no longer lists it;
 * - `withdrawn`: published before, excluded now;
 * - `sold_out`: published before, and it cannot be ordered now;
 * - `reshaped`: another cpu or memory, and perhaps another price;
 * - `repriced`: the source states another price. A new exchange rate alone is no change;
 * - `excluded`: excluded before and after, for another reason;
 * - `changed`: other facts (machine-facts.ts) and nothing else;
 * - `restocked`: sold out before, published now;
 * - `published`: excluded before, published now;
 * - `returned`: retired before;
 * - `added`: new to every catalogue.
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

/** Kinds of changes of a cluster, in the order of every display. */
export const CLUSTER_CHANGES = ['retired', 'changed', 'returned', 'added'] as const;

export type ClusterChangeKind = (typeof CLUSTER_CHANGES)[number];

/** A new name of a region, or of the provider if `region` is null. `before` is null for a new region. */
export interface Naming {
  readonly region: string | null;
  readonly before: string | null;
  readonly after: string;
}

/** A changed exchange rate: units of the currency for one euro, exact. */
export interface RateChange {
  readonly currency: string;
  /** Null for a new currency. */
  readonly before: string | null;
  readonly after: string;
}

/** Stored fields of a cluster, in the order of every display. */
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
