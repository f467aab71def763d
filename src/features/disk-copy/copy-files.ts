/** The first line of a document file. Times are milliseconds since the epoch. */
export interface Head {
  readonly lineage: string;
  readonly id: string;
  readonly version: number;
  /** One process' epoch: while it is confirmed, so are all documents that were read in it. */
  readonly stretch: string;
  readonly readAt: number;
  /** The time that the document could state when it was read. */
  readonly asOf?: string | undefined;
}

export interface StoredDocument {
  readonly version: number;
  /** The document in the form of the cache. */
  readonly value: Buffer;
  /** When it was last known to be true. */
  readonly knownAt: number;
  readonly asOf: string | undefined;
  /** The stamps that its stretch has confirmed. */
  readonly stamps: ReadonlyMap<string, string>;
}

/** The file that names the lineage of a copy. */
export interface Owner {
  readonly lineage: string;
  /** When PostgreSQL named the lineage; 0 if only the cache did. */
  readonly namedAt: number;
}
