import { LRUCache } from 'lru-cache';
import { type CacheKeys, MACHINES_PER_BUCKET } from '../document/keys.ts';
import { loadRegionOfMachine } from '../document/load.ts';
import type { CacheLink } from './cache-subscription.ts';
import type { PostgresReads } from './postgres-reads.ts';

/** Bytes that a page of regions takes, with its entry. */
const PAGE = MACHINES_PER_BUCKET * Int32Array.BYTES_PER_ELEMENT + 500;
/** Bytes that an unknown id takes. */
const UNKNOWN = 100;
/** While the link is down nobody tells of a new machine: that one is unknown is believed for this long (ms). */
const UNLINKED_UNKNOWN_MS = 1000;

export interface MachineRegionsOptions {
  readonly link: CacheLink;
  readonly postgres: PostgresReads;
  readonly now: () => number;
  /** Bytes that may be kept: three quarters for what is known, a quarter for what is known to be unknown. */
  readonly memoryLimit: number;
}

/**
 * Which region a machine is in: a machine never moves, so what is known stays known. Ids are given one after the
 * other, so that a page of neighbours costs four bytes each where a map would take sixty.
 */
export class MachineRegions {
  readonly #link: CacheLink;
  readonly #postgres: PostgresReads;
  readonly #now: () => number;
  /** Page number → region of each of its ids; 0 where it is not known. */
  readonly #known: LRUCache<number, Int32Array>;
  /** Machine id → when it was found to be unknown, in milliseconds. */
  readonly #unknown: LRUCache<number, number>;
  /** Counts what makes an answer that is still on its way worthless. */
  #forgotten = 0;
  #unknownForgotten = 0;

  constructor(options: MachineRegionsOptions) {
    this.#link = options.link;
    this.#postgres = options.postgres;
    this.#now = options.now;
    // By size and not by number, for which all the room would be taken at the start.
    this.#known = new LRUCache({
      maxSize: room(options.memoryLimit * 0.75, PAGE),
      sizeCalculation: () => PAGE,
    });
    this.#unknown = new LRUCache({
      maxSize: room(options.memoryLimit * 0.25, UNKNOWN),
      sizeCalculation: () => UNKNOWN,
    });
  }

  /** What memory knows; undefined says nothing. */
  peek(machineId: number): number | undefined {
    const page = this.#known.get(Math.floor(machineId / MACHINES_PER_BUCKET));
    return page?.[machineId % MACHINES_PER_BUCKET] || undefined;
  }

  /** Undefined when no catalogue has given this id. @throws Unavailable */
  async of(machineId: number, keys: CacheKeys): Promise<number | undefined> {
    const known = this.peek(machineId);
    if (known !== undefined) return known;
    if (this.#isUnknown(machineId)) return undefined;
    const forgotten = this.#forgotten;
    const unknownForgotten = this.#unknownForgotten;
    const at = this.#now();
    const region = await this.#read(machineId, keys);
    if (forgotten !== this.#forgotten) return region;
    if (region !== undefined) this.#learn(machineId, region);
    else if (unknownForgotten === this.#unknownForgotten) this.#unknown.set(machineId, at);
    return region;
  }

  /** Something was published, or may have been: what was unknown may exist by now. */
  forgetUnknown(): void {
    this.#unknownForgotten += 1;
    this.#unknown.clear();
  }

  /** Another lineage gives its own ids. */
  forget(): void {
    this.#forgotten += 1;
    this.#known.clear();
    this.forgetUnknown();
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
    return since !== undefined && (this.#link.linked || this.#now() - since <= UNLINKED_UNKNOWN_MS);
  }

  async #read(machineId: number, keys: CacheKeys): Promise<number | undefined> {
    const key = keys.machineRegions(machineId);
    const cached = await this.#link.ask((redis) => redis.hget(key, String(machineId)));
    if (cached != null) return Number(cached);
    const region = await this.#postgres.run((sql) => loadRegionOfMachine(sql, machineId));
    // Evicted, most likely. It needs neither a fence nor an expiry.
    if (region !== undefined) void this.#link.ask((redis) => redis.hset(key, machineId, region));
    return region;
  }
}

const room = (bytes: number, each: number): number => Math.max(16 * each, Math.floor(bytes));
