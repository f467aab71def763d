import type { Document } from '../document/document.ts';
import type { DocumentTier } from './tiers/tier.ts';

/** When a document was current. */
export interface ReadAt {
  /** The subscription's epoch. */
  readonly epoch: number;
  /** In milliseconds. */
  readonly at: number;
}

/** The same, and the time that the document states. */
export interface DocumentReadAt extends ReadAt {
  readonly asOf?: string | undefined;
}

/** The reader's side of a copy. */
export interface CopyFeed {
  /** The current epoch, and the time and stamps that it has confirmed for memory; undefined without a link. */
  confirmed(): (ReadAt & { readonly stamps: ReadonlyMap<string, string> }) | undefined;
  /** The documents in memory that are not outdated. */
  documents(): Iterable<{ readonly id: string; readonly document: Document } & DocumentReadAt>;
}

/** A copy of a reader's documents that outlives its process. It never throws. */
export interface DurableCopy {
  readonly tier: DocumentTier;
  feedFrom(feed: CopyFeed): void;
  /** Begins a lineage. @param isSure Postgres has named it */
  follow(lineage: string, isSure: boolean): void;
  /** The lineage of the copy. */
  lineage(): Promise<string | undefined>;
  /** The machines of all lists in the copy, by region. */
  machines(): AsyncIterable<readonly [regionId: number, machineIds: Iterable<string>]>;
}
