/** The interface of the tiers: memory, cache, disk copy, Postgres. */
import type { MaybePromise, Tier } from '../../document/answer.ts';
import type { Document } from '../../document/document.ts';
import type { CacheKeys, DocumentName } from '../../document/keys.ts';
import type { KnownStamps } from '../freshness.ts';

/** A document, or undefined for none, and the tier that answered. */
export interface TieredResult {
  readonly document: Document | undefined;
  readonly tier: Tier;
  /** When its sources were last verified: the document has every change until then. Undefined if unknown. */
  readonly asOf?: string | undefined;
  /** Set if memory answered and every change reaches it: the id whose invalidation ends the result. */
  readonly invalidatedBy?: string | undefined;
  /** The tier may have lost a version that this reader served before its last start. */
  readonly mayLack?: boolean;
  /** Postgres answered, and can name its lineage. */
  readonly isOfPostgres?: boolean;
  /** Set for an unconfirmed document: when it was last current, in milliseconds. */
  readonly knownAt?: number;
  /** Set if the tier may be behind: since when, in milliseconds. */
  readonly unsureSince?: number | undefined;
  /** The document was served before, and no read confirms it. */
  readonly isRecalled?: boolean;
}

/** Runs the read of a document from Postgres under limits of the caller. */
export type LookUp = <T>(read: () => Promise<T | undefined>) => Promise<T | undefined>;

export interface Wanted {
  readonly keys: CacheKeys;
  readonly name: DocumentName;
  readonly id: string;
  /** The document that memory has. A tier with the same version confirms it without sending it. */
  readonly cached: Document | undefined;
  /** The oldest version that may be served. */
  readonly atLeast: number;
  /** The stamps that were known before the read. */
  readonly stamps: KnownStamps;
  readonly lookUp: LookUp | undefined;
}

/** A result that is about to be served. */
export interface Given {
  /** Undefined: there is no such document. */
  readonly document: Document | undefined;
  /** The subscription's epoch before the read; undefined if the result may be outdated already. */
  readonly epoch: number | undefined;
  /** When it was current, in milliseconds. */
  readonly at: number;
  /** See `TieredResult.asOf`. */
  readonly asOf?: string | undefined;
}

/** A tier implements the methods that it needs. */
export interface DocumentTier {
  /** False while a retry is useless. */
  readonly isConnected?: boolean;
  /**
   * Returns the current document. Null: this tier has none, or an older one. Undefined: it does not answer yet.
   * @throws Unavailable
   */
  read?(wanted: Wanted): MaybePromise<TieredResult | null | undefined>;
  /** Returns a document that may be outdated, if no other tier answers. */
  readUnsure?(wanted: Wanted): Promise<TieredResult | undefined>;
  /** Returns a document that was served before, if it is young enough. */
  recall?(wanted: Wanted): MaybePromise<TieredResult | undefined>;
  /** Returns the newest version of this tier, if it may be newer than `version`; else 0. */
  newest?(id: string, version: number): Promise<number>;
  /** Receives an announced version. */
  heard?(id: string, version: number): void;
  /** Receives a result that is about to be served. */
  given?(wanted: Wanted, given: Given): void;
  /** Receives a result that another tier has recalled. */
  recalled?(wanted: Wanted, result: TieredResult): void;
  /** Begins a lineage. */
  begin?(lineage: string): void;
}
