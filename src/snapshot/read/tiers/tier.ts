/** The interface of the places from which a reader takes documents. */
import type { MaybePromise, Tier } from '../../document/answer.ts';
import type { Document } from '../../document/document.ts';
import type { CacheKeys, DocumentName } from '../../document/keys.ts';
import type { KnownStamps } from '../freshness.ts';

/** A document, or the knowledge that there is none, and the tier that answered. */
export interface TieredResult {
  readonly document: Document | undefined;
  readonly tier: Tier;
  /** When its sources were last verified: the document has every change until then. Undefined while that is not known. */
  readonly asOf?: string | undefined;
  /** Set if memory answered at once and every change reaches it: the id whose invalidation ends the result. */
  readonly invalidatedBy?: string | undefined;
  /** The tier may have lost a version that this reader gave before its last start. */
  readonly mayLack?: boolean;
  /** Postgres answered, and can name its lineage. */
  readonly isOfPostgres?: boolean;
  /** Set if nothing confirms the document now: when it was last known to be true, in milliseconds. */
  readonly knownAt?: number;
  /** Set if the tier may be behind, and cannot say how far: since when, in milliseconds. */
  readonly unsureSince?: number | undefined;
  /** The document was given before. Nothing was read that confirms it. */
  readonly isRecalled?: boolean;
}

/** Runs a read from Postgres of a document that memory does not have, under limits of the caller's. */
export type LookUp = <T>(read: () => Promise<T | undefined>) => Promise<T | undefined>;

export interface Wanted {
  readonly keys: CacheKeys;
  readonly name: DocumentName;
  readonly id: string;
  /** The document that memory has. A tier with the same version confirms it without sending it. */
  readonly cached: Document | undefined;
  /** The oldest version that may be given. */
  readonly atLeast: number;
  /** The stamps that were known before anything was read. */
  readonly stamps: KnownStamps;
  readonly lookUp: LookUp | undefined;
}

/** A result that is about to be given. */
export interface Given {
  /** Undefined: it is known that there is none. */
  readonly document: Document | undefined;
  /** The subscription's epoch before anything was read; undefined if the result may be outdated already. */
  readonly epoch: number | undefined;
  /** When it was known to be true, in milliseconds. */
  readonly at: number;
  /** See `TieredResult.asOf`. */
  readonly asOf?: string | undefined;
}

/** One of memory, cache, disk copy and Postgres. Each has the methods that it needs. */
export interface DocumentTier {
  /** False while reading again is of no use. */
  readonly isConnected?: boolean;
  /**
   * The document, if this tier knows what is true now. Null: it has none, or an older one. Undefined: it does not answer yet.
   * @throws Unavailable
   */
  read?(wanted: Wanted): MaybePromise<TieredResult | null | undefined>;
  /** The document of a tier that may be behind, for when no other one answers. */
  readUnsure?(wanted: Wanted): Promise<TieredResult | undefined>;
  /** The document that was given before, if it is young enough. */
  recall?(wanted: Wanted): MaybePromise<TieredResult | undefined>;
  /** The newest version in this tier, if that may be newer than this one; else 0. */
  newest?(id: string, version: number): Promise<number>;
  /** A newer version was published. */
  heard?(id: string, version: number): void;
  /** This is about to be given. */
  given?(wanted: Wanted, given: Given): void;
  /** Another tier has recalled this. */
  recalled?(wanted: Wanted, result: TieredResult): void;
  /** Everything is of this lineage from now on. */
  begin?(lineage: string): void;
}
