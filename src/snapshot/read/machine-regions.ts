import { LRUCache } from 'lru-cache';
import { withTimeout } from '../../domain/timeout.ts';
import type { MaybePromise } from '../document/answer.ts';
import { type CacheKeys, MACHINES_PER_BUCKET } from '../document/keys.ts';
import { loadRegionOfMachine } from '../document/load.ts';
import { BYTES_PER_ENTRY } from '../document/memory-costs.ts';
import type { CacheSubscription } from './cache-subscription.ts';
import type { DurableCopy } from './durable-copy.ts';
import type { Reads } from './postgres/reads.ts';
import { fromEither } from './tiers/either.ts';

/** Bytes of a page of regions. */
const PAGE = MACHINES_PER_BUCKET * Int32Array.BYTES_PER_ELEMENT + BYTES_PER_ENTRY;
/** How long a machine counts as unknown (ms) while no messages arrive. */
const UNLINKED_UNKNOWN_MS = 1000;
/** Milliseconds between two reads of all lists on disk, and the longest wait of a request for one. */
const READ_COPY_EVERY_MS = 60_000;
const WAIT_FOR_COPY_MS = 2000;

export interface MachineRegionsOptions {
  readonly subscription: CacheSubscription;
  readonly postgres: Reads;
  readonly now: () => number;
  readonly copy?: Pick<DurableCopy, 'machines'> | undefined;
  /** Bytes: three quarters for known machines, a quarter for unknown ones. */
  readonly memoryLimit: number;
}

/**
 * Finds the region of a machine. A machine never moves, so a known region stays true. Ids are consecutive: a page costs four
 * bytes a machine, a map costs sixty.
 */
export class MachineRegions {
  readonly #subscription: CacheSubscription;
  readonly #postgres: Reads;
  readonly #now: () => number;
  readonly #copy: MachineRegionsOptions['copy'];
  /** Page number → region of each of its ids; 0 where it is not known. */
  readonly #known: LRUCache<number, Int32Array>;
  /** Machine id → when it was found to be unknown, in milliseconds. */
  readonly #unknown: LRUCache<number, number>;
  #readingCopy: Promise<void> | undefined;
  #copyReadAt = Number.NEGATIVE_INFINITY;
  /** Counters: the result of a read that began before a clear is not stored. */
  #clears = 0;
  #unknownClears = 0;

  constructor(options: MachineRegionsOptions) {
    this.#subscription = options.subscription;
    this.#postgres = options.postgres;
    this.#now = options.now;
    this.#copy = options.copy;
    // Limited by size: with a limited number, the LRU allocates everything at its start.
    this.#known = new LRUCache({
      maxSize: room(options.memoryLimit * 0.75, PAGE),
      sizeCalculation: () => PAGE,
    });
    this.#unknown = new LRUCache({
      maxSize: room(options.memoryLimit * 0.25, BYTES_PER_ENTRY),
      sizeCalculation: () => BYTES_PER_ENTRY,
    });
  }

  /** Returns the region, without a promise if memory has it; undefined for an unknown id. */
  get(machineId: number, keys: CacheKeys): MaybePromise<number | undefined> {
    const region = this.#knownRegion(machineId);
    if (region) return region;
    return this.#isUnknown(machineId) ? undefined : this.#find(machineId, keys);
  }

  #knownRegion(machineId: number): number | undefined {
    const page = this.#known.get(Math.floor(machineId / MACHINES_PER_BUCKET));
    return page?.[machineId % MACHINES_PER_BUCKET] || undefined;
  }

  async #find(machineId: number, keys: CacheKeys): Promise<number | undefined> {
    const clears = this.#clears;
    const unknownClears = this.#unknownClears;
    const at = this.#now();
    const region = await this.#read(machineId, keys);
    if (clears !== this.#clears) return region;
    if (region !== undefined) this.#learn(machineId, region);
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
    this.#copyReadAt = Number.NEGATIVE_INFINITY;
    this.clearUnknown();
  }

  #learn(machineId: number, region: number): void {
    const number = Math.floor(machineId / MACHINES_PER_BUCKET);
    let page = this.#known.get(number);
    if (!page) {
      page = new Int32Array(MACHINES_PER_BUCKET);
      this.#known.set(number, page);
    }
    page[machineId % MACHINES_PER_BUCKET] = region;
  }

  #isUnknown(machineId: number): boolean {
    const since = this.#unknown.get(machineId);
    return since !== undefined && (this.#subscription.linked || this.#now() - since <= UNLINKED_UNKNOWN_MS);
  }

  async #read(machineId: number, keys: CacheKeys): Promise<number | undefined> {
    const key = keys.machineRegions(machineId);
    const fromCache = () => this.#readFromCache(key, machineId);
    const cached = await fromCache();
    if (typeof cached === 'number') return cached;
    const fromPostgres = () => this.#readFromPostgres(key, machineId);
    return cached === null ? fromPostgres() : fromEither(this.#subscription, fromCache, fromPostgres);
  }

  /** Returns null if the cache has no region, undefined if it does not answer. */
  async #readFromCache(key: string, machineId: number): Promise<number | null | undefined> {
    const cached = await this.#subscription.ask((redis) => redis.hget(key, String(machineId)));
    // Any other text is damaged. The region of Postgres replaces it.
    if (cached == null) return cached;
    return /^[1-9]\d{0,9}$/.test(cached) ? Number(cached) : null;
  }

  /** Reads from Postgres, and writes to the cache. */
  async #readFromPostgres(key: string, machineId: number): Promise<number | undefined> {
    const region = await this.#fromPostgres(machineId);
    // The cache has evicted it. A machine never moves: it needs neither a fence nor an expiry.
    if (region !== undefined) void this.#subscription.ask((redis) => redis.hset(key, machineId, region));
    return region;
  }

  /** Falls back to the copy on disk, which has the machines of its lists. */
  async #fromPostgres(machineId: number): Promise<number | undefined> {
    try {
      return await this.#postgres.run(
        (sql) => loadRegionOfMachine(sql, machineId),
        (region) => region !== undefined,
      );
    } catch (error) {
      await withTimeout(WAIT_FOR_COPY_MS, this.#readCopy());
      const region = this.#knownRegion(machineId);
      if (region === undefined) throw error;
      return region;
    }
  }

  #readCopy(): Promise<void> {
    if (this.#now() - this.#copyReadAt > READ_COPY_EVERY_MS) {
      this.#copyReadAt = this.#now();
      this.#readingCopy = this.#learnFromCopy();
    }
    return this.#readingCopy ?? Promise.resolve();
  }

  async #learnFromCopy(): Promise<void> {
    const clears = this.#clears;
    for await (const [region, machineIds] of this.#copy?.machines() ?? []) {
      if (clears !== this.#clears) return;
      for (const machineId of machineIds) this.#learn(Number(machineId), region);
    }
  }
}

const room = (bytes: number, each: number): number => Math.max(16 * each, Math.floor(bytes));
