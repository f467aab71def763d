/** A run: its cause, its HTTP requests and what it changes. */

/**
 * - `slot`: a slot of its schedule;
 * - `first`: the first run of the source, in a slot of its schedule;
 * - `retry`: the same slot again, after a failed run;
 * - `hand`: a person started it, by `fleetbook sync` or in the console;
 * - `watch`: a watched control plane reported a new state;
 * - `follow`: a catalogue has new machines, which the source's clusters may use;
 * - `decision`: an operator approved a held batch, or undid an approval.
 */
export const RUN_CAUSES = ['slot', 'first', 'retry', 'hand', 'watch', 'follow', 'decision'] as const;

export type RunCause = (typeof RUN_CAUSES)[number];

export interface Caused {
  readonly cause: RunCause | null;
  /** The person who started the run; null for a run without one. */
  readonly askedBy: string | null;
}

const IN_WORDS: Readonly<Record<RunCause, string>> = {
  slot: 'by schedule',
  first: 'the first run',
  retry: 'a retry',
  hand: 'by hand',
  watch: 'by a watch',
  follow: 'after new machines',
  decision: 'by a decision',
};

/** Returns the cause as text: `by schedule`, `by hand, by ada`; empty for an unknown cause. */
export function causeInWords({ cause, askedBy }: Caused): string {
  if (cause === null) return '';
  return askedBy === null ? IN_WORDS[cause] : `${IN_WORDS[cause]}, by ${askedBy}`;
}

/** What a run read of its regions. */
export interface Completeness {
  /** Its regions, read or not. */
  readonly regions: number;
  /** Regions that could not be read, or without a usable row. */
  readonly unread: number;
  /** Regions that lack many machines of the run before, the largest loss first: a long walk of pages may have lost rows. */
  readonly short: readonly ShortRegion[];
}

export interface ShortRegion {
  readonly code: string;
  readonly missing: number;
  /** Machines of the run before. */
  readonly known: number;
}

/** The completeness of runs without regions. */
export const COMPLETE: Completeness = { regions: 0, unread: 0, short: [] };

const SHORT_SHOWN = 3;

/** Returns e.g. `6 of 9 regions unread, 119 of 731 machines missing in westeurope`; undefined for a complete run. */
export function whatIsMissing({ regions, unread, short }: Completeness): string | undefined {
  const texts = short
    .slice(0, SHORT_SHOWN)
    .map(({ code, missing, known }) => `${missing} of ${known} machines missing in ${code}`);
  if (unread > 0) texts.unshift(`${unread} of ${regions} regions unread`);
  if (short.length > SHORT_SHOWN) texts.push(`and many in ${short.length - SHORT_SHOWN} more regions`);
  return texts.length === 0 ? undefined : texts.join(', ');
}

/** When a run begins that a person requested. */
export interface RequestedRun {
  /** `now`: as soon as a worker is free, within a second or two. */
  readonly starts: 'now' | 'after the current run';
  /** The id of the current run. */
  readonly currentRun: number | null;
}

/** An HTTP request to the upstream, with all its attempts. */
export interface RunRequest {
  /** Position in the run, from 1. */
  readonly n: number;
  /** Origin, path and page numbers, without the rest of the query; see sources/http/request-log.ts. */
  readonly address: string;
  readonly status: number | null;
  readonly bytes: number;
  /** Milliseconds from the first attempt to the last byte, pauses included. */
  readonly ms: number;
  readonly attempts: number;
  readonly error: string | null;
}

/** Sums over all requests of a run, and the stored requests. */
export interface RunRequests {
  readonly total: number;
  readonly attempts: number;
  readonly failed: number;
  readonly bytes: number;
  readonly ms: number;
  /** In order: the first requests, the failed ones and the slowest ones. */
  readonly kept: readonly RunRequest[];
}

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
  'engine',
  'version',
  'end_of_life',
  'status',
  'shards',
  'replicas',
  'user',
  'disks',
  'created_at',
] as const;

export type ClusterField = (typeof CLUSTER_FIELDS)[number];
