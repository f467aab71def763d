import type { DocumentName } from '../../domain/document-name.ts';
import { hashOf, LANE_TAGS } from './lanes.ts';

export type { DocumentName };

/** The document's name as text; also its key in memory and for single flight. */
export function documentId(name: DocumentName): string {
  switch (name.kind) {
    case 'providers':
      return 'providers';
    case 'region':
      return `region:${name.regionId}`;
    case 'columns':
      return `columns:${name.regionId}`;
    case 'clusters':
      return `clusters:${name.organizationId}`;
    case 'token':
      return `token:${name.hash}`;
  }
}

/** Where a reader that cannot reach Postgres learns which lineage is current. */
export const LINEAGE_KEY = 'fb:lineage';

/** Stands where a message names a document: the changes feed has come to a position, in the place of the version. */
export const FEED_ID = 'feed';

/** Machine ids are mapped to regions in hashes of this many fields: small enough for Redis' compact encoding. */
export const MACHINES_PER_BUCKET = 256;

/**
 * Redis keys of one database's lineage. A document, the revision of its lane and the message about both change in one
 * script, so they have one hash tag. On one server all documents are in one lane. In a Redis Cluster there are many,
 * spread over the slots: each has a tag and a revision of its own.
 */
export class CacheKeys {
  readonly lineage: string;
  readonly lanes: number;
  /** By lane. */
  readonly #prefixes: readonly string[];

  /** @param lanes as `lanesOf` says for the cache's client */
  constructor(lineage: string, lanes: number) {
    this.lineage = lineage;
    this.lanes = lanes;
    this.#prefixes =
      lanes === 1 ? [`fb:{${lineage}}:`] : LANE_TAGS.slice(0, lanes).map((tag) => `fb:{${tag}}:${lineage}:`);
  }

  /** Pattern of every key of the lineage. */
  get all(): string {
    return this.lanes === 1 ? `${this.#prefix(0)}*` : `fb:{*}:${this.lineage}:*`;
  }

  document(name: DocumentName): string {
    const id = documentId(name);
    return this.#prefix(this.laneOf(id)) + id;
  }

  /** What follows the prefix of a key of this lineage: of a document its id. */
  idOf(key: string): string {
    const prefix = this.#prefixes.find((each) => key.startsWith(each)) ?? '';
    return key.slice(prefix.length);
  }

  /** The lane of a document, or of anything else by its name. */
  laneOf(id: string): number {
    return this.lanes === 1 ? 0 : hashOf(id) % this.lanes;
  }

  /** Counts every document of the lane that was set: a reader that missed a message sees a number it does not expect. */
  revision(lane: number): string {
    return `${this.#prefix(lane)}revision`;
  }

  /** Channel of `<revision of the document's lane> <document id> <version>`. */
  get published(): string {
    return `${this.#prefix(0)}published`;
  }

  /** Channel of `<revision of the lane> pulse <lane>`: a publisher reaches the lane. */
  get pulses(): string {
    return `${this.#prefix(0)}pulses`;
  }

  /** Hash of how old the data is, see `loadFreshness`. */
  get verified(): string {
    return `${this.#prefix(0)}verified`;
  }

  /** How far the lineage's database was seen to be, see src/db/connection/history.ts. */
  get history(): string {
    return `${this.#prefix(0)}history`;
  }

  /** Hash that holds this machine's region; a machine never changes its region, so it needs no fence. */
  machineRegions(machineId: number): string {
    const id = `machine-regions:${Math.floor(machineId / MACHINES_PER_BUCKET)}`;
    return this.#prefix(this.laneOf(id)) + id;
  }

  #prefix(lane: number): string {
    return this.#prefixes[lane] as string;
  }
}
