/** What a reader and the thread of its disk copy say to each other. Times are milliseconds since the epoch. */
import type { CopyFailure } from './failures.ts';

export interface CopyLimits {
  /** Of all files together. */
  readonly bytes: number;
  readonly staleLimitMs: number;
  readonly tokenStaleLimitMs: number;
}

/** Everything that was read in this epoch of this run, and has no newer version, was true at this time. */
export interface Confirmed {
  readonly run: string;
  readonly epoch: number;
  readonly at: number;
}

export interface Batch {
  readonly lineage: string;
  /** When PostgreSQL named the lineage; 0 where it did not. What is stored of another, later one stays. */
  readonly lineageAt: number;
  readonly now: number;
  /** Documents of which a version was given or heard of: what is older is put out. */
  readonly floors: readonly (readonly [id: string, version: number])[];
  readonly documents: readonly {
    readonly id: string;
    readonly version: number;
    readonly run: string;
    readonly epoch: number;
    readonly readAt: number;
    /** As the cache has it; undefined to say when a stored one was last read. */
    readonly value: Uint8Array | undefined;
  }[];
  readonly stamps: readonly (readonly [id: string, stamp: string])[];
  readonly confirmed: Confirmed | undefined;
}

export interface StoredDocument {
  readonly value: Uint8Array;
  readonly version: number;
  /** When it was last known to be true. */
  readonly knownAt: number;
}

/** Of one document; 0 where there is none. */
export interface KnownVersions {
  /** That was ever given or heard of. */
  readonly newest: number;
  /** Whose content is in the copy. */
  readonly held: number;
}

/** What the thread is asked, and what it answers to each. */
export interface Questions {
  write: { readonly ask: Batch; readonly answer: boolean };
  /** What is known of each document, after these have put out what is older. */
  supersede: { readonly ask: Batch; readonly answer: readonly KnownVersions[] };
  read: {
    readonly ask: {
      readonly lineage: string;
      readonly id: string;
      readonly since: number;
      readonly now: number;
    };
    readonly answer: StoredDocument | undefined;
  };
  remove: { readonly ask: string; readonly answer: undefined };
  region: {
    readonly ask: { readonly lineage: string; readonly machineId: number };
    readonly answer: number | undefined;
  };
  lineage: { readonly ask: undefined; readonly answer: string | undefined };
  stamps: { readonly ask: string; readonly answer: readonly (readonly [id: string, stamp: string])[] };
  /** Removes what is too old, and tells the sizes of the rest. */
  prune: { readonly ask: number; readonly answer: { readonly bytes: number; readonly documents: number } };
  close: { readonly ask: undefined; readonly answer: undefined };
}

export type Kind = keyof Questions;

export interface Question<K extends Kind = Kind> {
  readonly number: number;
  readonly kind: K;
  readonly ask: Questions[K]['ask'];
}

export interface Reply<K extends Kind = Kind> {
  readonly number: number;
  readonly answer?: Questions[K]['answer'];
  readonly failure?: { readonly reason: CopyFailure; readonly message: string };
  /** True when the copy was removed as a whole: what it held has to be kept anew. */
  readonly dropped?: boolean;
}
