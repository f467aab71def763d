import type { DocumentName } from '../../domain/document-name.ts';
import { isCluster, type RedisClient } from '../../redis/redis.ts';

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

/** Key of the current lineage, for readers during an outage of PostgreSQL. */
export const LINEAGE_KEY = 'fb:lineage';

/** Hash of the sources that workers run by schedule, and their cron expressions. Workers write it every minute. */
export const SCHEDULES_KEY = 'fb:schedules';

/** Replaces a document's id in messages about the changes feed, whose position replaces the version. */
export const FEED_ID = 'feed';

/** Fields of one hash of machine ids and regions: few enough for Redis' compact encoding. */
export const MACHINES_PER_BUCKET = 256;

/**
 * Hash tags of the lanes in a Redis Cluster. Tag i hashes into the i-th of 64 equal ranges of the 16,384 slots, so masters
 * that share the slots evenly share the lanes evenly.
 */
export const LANE_TAGS = [
  10, 18, 113, 342, 29, 21, 3, 122, 69, 61, 72, 162, 50, 58, 153, 43, 11, 19, 112, 343, 28, 20, 2, 123, 68,
  60, 73, 163, 51, 59, 152, 42, 12, 102, 111, 119, 133, 23, 1, 9, 173, 63, 70, 78, 52, 142, 49, 41, 13, 103,
  110, 118, 132, 22, 0, 8, 172, 62, 71, 79, 53, 143, 48, 40,
];

export const lanesOf = (redis: RedisClient): number => (isCluster(redis) ? LANE_TAGS.length : 1);

/** FNV-1a, 32 bits. It must never change: every release puts a document into the same lane. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}

/**
 * Redis keys of one lineage. One script changes a document and the revision of its lane, so both have one hash tag. A Redis
 * Cluster has many lanes, a single server has one.
 */
export class CacheKeys {
  readonly lineage: string;
  readonly lanes: number;
  readonly #prefixes: readonly string[];

  constructor(lineage: string, lanes: number) {
    this.lineage = lineage;
    this.lanes = lanes;
    this.#prefixes =
      lanes === 1 ? [`fb:{${lineage}}:`] : LANE_TAGS.slice(0, lanes).map((tag) => `fb:{${tag}}:${lineage}:`);
  }

  get all(): string {
    return this.lanes === 1 ? `${this.#prefix(0)}*` : `fb:{*}:${this.lineage}:*`;
  }

  document(name: DocumentName): string {
    const id = documentId(name);
    return this.#prefix(this.laneOf(id)) + id;
  }

  idOf(key: string): string {
    const prefix = this.#prefixes.find((each) => key.startsWith(each)) ?? '';
    return key.slice(prefix.length);
  }

  laneOf(id: string): number {
    return this.lanes === 1 ? 0 : hashOf(id) % this.lanes;
  }

  /** Counts the writes of the lane. A gap shows a reader that it has missed a message. */
  revision(lane: number): string {
    return `${this.#prefix(lane)}revision`;
  }

  /** Channel of `<revision of the document's lane> <document id> <version>`. */
  get published(): string {
    return `${this.#prefix(0)}published`;
  }

  /** Channel of `<revision of the lane> heartbeat <lane>`. */
  get heartbeats(): string {
    return `${this.#prefix(0)}heartbeats`;
  }

  get verified(): string {
    return `${this.#prefix(0)}verified`;
  }

  /** Hash with this machine's region. It needs no fence, because a machine never changes its region. */
  machineRegions(machineId: number): string {
    const id = `machine-regions:${Math.floor(machineId / MACHINES_PER_BUCKET)}`;
    return this.#prefix(this.laneOf(id)) + id;
  }

  #prefix(lane: number): string {
    return this.#prefixes[lane] as string;
  }
}
