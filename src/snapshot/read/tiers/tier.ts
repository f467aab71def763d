/** The common part of the tiers: memory, cache, Postgres. */
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
