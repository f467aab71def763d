import type { DocumentName } from '../../domain/document-name.ts';

export type { DocumentName };

/** Returns the document's name as text, which is also its key in memory and for single flight. */
export function documentId(name: DocumentName): string {
  switch (name.kind) {
    case 'providers':
      return 'providers';
    case 'region':
    case 'columns':
      return `${name.kind}:${name.regionId}`;
    case 'clusters':
    case 'price-book':
      return `${name.kind}:${name.organizationId}`;
    case 'token':
      return `token:${name.hash}`;
  }
}

/** The key of a region in the document of providers. */
export function regionKey(providerId: number, regionId: number): string {
  return `${providerId}/${regionId}`;
}

/** Returns what `regionKey` got. */
export function placeOfRegion(key: string): { readonly providerId: number; readonly regionId: number } {
  const slash = key.indexOf('/');
  return { providerId: Number(key.slice(0, slash)), regionId: Number(key.slice(slash + 1)) };
}

/** Key of the current lineage, for readers during an outage of PostgreSQL. */
export const LINEAGE_KEY = 'fb:lineage';

/** Hash of the sources that workers run by schedule, and their cron expressions. Workers write it every minute. */
export const SCHEDULES_KEY = 'fb:schedules';

/** Replaces a document's id in entries about the changes feed, whose position replaces the version. */
export const FEED_ID = 'feed';

/** Ids of a bucket: so few that Redis keeps the hash with their regions in its compact encoding. */
export const MACHINES_PER_BUCKET = 256;

/** Redis keys of one lineage. Scripts change several of them in one step, so all are in one slot of a Redis Cluster. */
export class CacheKeys {
  readonly lineage: string;
  readonly #prefix: string;
  /** The stream of publications, heartbeats and stamps, see `publish/fence.ts`. */
  readonly stream: string;
  /** Hash of the stamps, see `loadFreshness`. */
  readonly stamps: string;

  constructor(lineage: string) {
    this.lineage = lineage;
    this.#prefix = `fb:{${lineage}}:`;
    this.stream = `${this.#prefix}stream`;
    this.stamps = `${this.#prefix}stamps`;
  }

  get all(): string {
    return `${this.#prefix}*`;
  }

  /** @param name or the document's id */
  document(name: DocumentName | string): string {
    return this.#prefix + (typeof name === 'string' ? name : documentId(name));
  }

  idOf(key: string): string {
    return key.slice(this.#prefix.length);
  }

  /** Hash with this machine's region. It needs no fence, because a machine never changes its region. */
  machineRegions(machineId: number): string {
    return `${this.#prefix}machine-regions:${Math.floor(machineId / MACHINES_PER_BUCKET)}`;
  }
}
