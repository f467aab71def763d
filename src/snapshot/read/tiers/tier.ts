/** The common part of the tiers: memory, cache, disk copy, Postgres. */
import type { Tier } from '../../document/answer.ts';
import type { Document } from '../../document/document.ts';
import type { CacheKeys, DocumentName } from '../../document/keys.ts';
import type { KnownStamps, ReadAt } from '../freshness.ts';

/** A document, or undefined for none, and the tier that answered. */
export interface TieredResult {
  readonly document: Document | undefined;
  readonly tier: Tier;
  /** When its sources were last verified: the document has every change until then. */
  readonly asOf?: string | undefined;
  /** Set if memory answered and every change reaches it: the id whose invalidation ends the result. */
  readonly invalidatedBy?: string | undefined;
  /** The tier may have lost a version that this reader served before its last start. */
  readonly mayLack?: boolean;
  /** Postgres answered, and can name its lineage. */
  readonly isOfPostgres?: boolean;
  /** Set for an unconfirmed document: when it was last current, in milliseconds. */
  readonly knownAt?: number | undefined;
}

/** Runs the read of a document from Postgres under limits of the caller. */
export type LookUp = <T>(read: () => Promise<T | undefined>) => Promise<T | undefined>;

export interface Wanted {
  readonly keys: CacheKeys;
  readonly name: DocumentName;
  readonly id: string;
  /** The document in memory. A tier with the same version confirms it without sending it. */
  readonly cached: Document | undefined;
  /** The oldest version that may be served. */
  readonly atLeast: number;
  readonly stamps: KnownStamps;
  readonly lookUp: LookUp | undefined;
}

export interface Served extends ReadAt {
  readonly document: Document | undefined;
}

export interface DocumentListener {
  onPublished?(id: string, version: number): void;
  onServed?(wanted: Wanted, served: Served): void;
  onLineage?(lineage: string): void;
}

export interface DocumentTier extends DocumentListener {
  /** Returns the current document. @throws Unavailable */
  read(wanted: Wanted): Promise<TieredResult>;
}

/** A copy of a reader's documents that outlives its process. It never throws. */
export interface DurableCopy extends DocumentListener {
  feedFrom(feed: CopyFeed): void;
  follow(lineage: string, isSure: boolean): void;
  lineage(): Promise<string | undefined>;
  read(name: DocumentName): Promise<TieredResult | undefined>;
  /** Returns the newest version of the copy, if it may be newer than `version`; else 0. */
  newest(id: string, version: number): Promise<number>;
  /** The machines of all lists in the copy, by region. */
  machines(): AsyncIterable<readonly [regionId: number, machineIds: Iterable<string>]>;
}

/** The reader's side of a copy. */
export interface CopyFeed {
  /** The current epoch, and the time and stamps that it has confirmed for memory; undefined without a link. */
  confirmed(): (ReadAt & { readonly stamps: ReadonlyMap<string, string> }) | undefined;
  /** The documents in memory that are not outdated. */
  documents(): Iterable<{ readonly id: string; readonly document: Document } & ReadAt>;
}
