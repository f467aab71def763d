import { LRUCache } from 'lru-cache';
import type { RedisClient } from '../../redis/redis.ts';
import type { MaybePromise } from '../document/answer.ts';
import { type CacheKeys, MACHINES_PER_BUCKET } from '../document/keys.ts';
import { loadRegionOfMachine } from '../document/load.ts';
import { BYTES_PER_ENTRY } from './budget.ts';
import type { OnReply } from './cache.ts';
import type { CacheLink } from './link.ts';
import type { Reads } from './postgres-reads.ts';

const BYTES_PER_BUCKET = MACHINES_PER_BUCKET * Int32Array.BYTES_PER_ELEMENT + BYTES_PER_ENTRY;
/** How long a machine counts as unknown (ms) while the reader is not linked. */
const UNLINKED_UNKNOWN_MS = 1000;

export interface MachineRegionsOptions {
  readonly link: CacheLink;
  readonly postgres: Reads;
  readonly now: () => number;
  /** Bytes: three quarters for known machines, a quarter for unknown ones. */
  readonly memoryLimit: number;
}

/**
 * Finds the region of a machine. A machine never moves, so a known region stays true. Ids are consecutive: a bucket costs
 * four bytes a machine, a map costs sixty.
 */
export class MachineRegions {
  readonly #options: MachineRegionsOptions;
  /** Bucket → region of each of its ids; 0 where it is not known. */
  readonly #known: LRUCache<number, Int32Array>;
  /** Machine id → when it was found to be unknown, in milliseconds. */
  readonly #unknown: LRUCache<number, number>;
  /** Counters: the result of a read that began before a clear is not stored. */
  #clears = 0;
  #unknownClears = 0;

  constructor(options: MachineRegionsOptions) {
    this.#options = options;
    this.#known = lruOf(options.memoryLimit * 0.75, BYTES_PER_BUCKET);
    this.#unknown = lruOf(options.memoryLimit * 0.25, BYTES_PER_ENTRY);
  }

  get(machineId: number, keys: CacheKeys, organizationId?: number): MaybePromise<number | undefined> {
    const region = this.#knownRegion(machineId);
    if (region) return region;
    return this.#isUnknown(machineId) ? undefined : this.#find(machineId, keys, organizationId);
  }

  #knownRegion(machineId: number): number | undefined {
    const bucket = this.#known.get(Math.floor(machineId / MACHINES_PER_BUCKET));
    return bucket?.[machineId % MACHINES_PER_BUCKET] || undefined;
  }

  #isUnknown(machineId: number): boolean {
    const { link, now } = this.#options;
    const since = this.#unknown.get(machineId);
    return since !== undefined && (link.linked || now() - since <= UNLINKED_UNKNOWN_MS);
  }

  async #find(machineId: number, keys: CacheKeys, organizationId?: number): Promise<number | undefined> {
    const clears = this.#clears;
    const unknownClears = this.#unknownClears;
    const at = this.#options.now();
    const region = await this.#read(machineId, keys, organizationId);
    if (clears !== this.#clears) return region;
    if (region !== undefined) this.#store(machineId, region);
    else if (unknownClears === this.#unknownClears) this.#unknown.set(machineId, at);
    return region;
  }

  /** Forgets unknown machines, e.g. after a publication: they may exist now. */
  clearUnknown(): void {
    this.#unknownClears += 1;
    this.#unknown.clear();
  }

  /** Forgets all machines: another lineage has other ids. */
  clear(): void {
    this.#clears += 1;
    this.#known.clear();
    this.clearUnknown();
  }

  /** Stores the machines of a list of a dump. */
  insertDumped(region: number, machineIds: Iterable<string>): void {
    for (const machineId of machineIds) this.#store(Number(machineId), region);
  }

  #store(machineId: number, region: number): void {
    const number = Math.floor(machineId / MACHINES_PER_BUCKET);
    let bucket = this.#known.get(number);
    if (!bucket) {
      bucket = new Int32Array(MACHINES_PER_BUCKET);
      this.#known.set(number, bucket);
    }
    bucket[machineId % MACHINES_PER_BUCKET] = region;
  }

  async #read(machineId: number, keys: CacheKeys, organizationId?: number): Promise<number | undefined> {
    const key = keys.machineRegions(machineId);
    const { link } = this.#options;
    const field = (redis: RedisClient) => redis.hget(key, String(machineId));
    return link.commands.hedge(
      (onReply: OnReply<string | null>) => link.commands.read(field, onReply),
      regionIn,
      () => this.#readPostgres(key, machineId, organizationId),
    );
  }

  /** Writes the region of Postgres to the cache. */
  async #readPostgres(key: string, machineId: number, organizationId?: number): Promise<number | undefined> {
    const { postgres, link } = this.#options;
    const region = await postgres.run((sql) => loadRegionOfMachine(sql, machineId), {
      check: (found) => found !== undefined,
      organizationId,
    });
    // The cache has evicted it. A machine never moves: it needs neither a fence nor an expiry.
    if (region !== undefined) void link.commands.run((redis) => redis.hset(key, machineId, region));
    return region;
  }
}

/** Returns undefined for any other text: it is damaged, and the region of Postgres replaces it. */
function regionIn(cached: string | null | undefined): number | undefined {
  return cached != null && /^[1-9]\d{0,9}$/.test(cached) ? Number(cached) : undefined;
}

/** Limited by size: with a limited number, the LRU allocates everything at its start. */
const lruOf = <V extends {}>(bytes: number, each: number): LRUCache<number, V> =>
  new LRUCache({ maxSize: Math.max(16 * each, Math.floor(bytes)), sizeCalculation: () => each });
