import type { DocumentName } from '../../domain/document-name.ts';

export type { DocumentName };

/** The document's name as text; also its key in memory and for single flight. */
export function documentId(name: DocumentName): string {
  switch (name.kind) {
    case 'providers':
      return 'providers';
    case 'region':
      return `region:${name.regionId}`;
    case 'clusters':
      return `clusters:${name.organizationId}`;
    case 'token':
      return `token:${name.hash}`;
  }
}

/** Where a reader that cannot reach Postgres learns which lineage is current. */
export const LINEAGE_KEY = 'fb:lineage';

/** Machine ids are mapped to regions in hashes of this many fields: small enough for Redis' compact encoding. */
export const MACHINES_PER_BUCKET = 256;

/**
 * Redis keys of one database's lineage. The hash tag puts all of them into one slot of a Redis Cluster, so that a
 * document, the revision and the message about them change in one script.
 */
export class CacheKeys {
  readonly lineage: string;
  readonly #prefix: string;

  constructor(lineage: string) {
    this.lineage = lineage;
    this.#prefix = `fb:{${lineage}}:`;
  }

  /** Pattern of every key of the lineage. */
  get all(): string {
    return `${this.#prefix}*`;
  }

  document(name: DocumentName): string {
    return this.#prefix + documentId(name);
  }

  /** Counts every document that was set: a reader that missed a message sees a number it does not expect. */
  get revision(): string {
    return `${this.#prefix}revision`;
  }

  /** Channel of `<revision> <document id> <version>`. */
  get published(): string {
    return `${this.#prefix}published`;
  }

  /** Hash of how old the data is, see `loadFreshness`. */
  get verified(): string {
    return `${this.#prefix}verified`;
  }

  /** Hash that holds this machine's region; a machine never changes its region, so it needs no fence. */
  machineRegions(machineId: number): string {
    return `${this.#prefix}machine-regions:${Math.floor(machineId / MACHINES_PER_BUCKET)}`;
  }
}
