import { LRUCache } from 'lru-cache';
import type { CacheLink } from './cache-link.ts';
import type { CacheKeys } from './keys.ts';
import { loadRegionOfMachine } from './load.ts';
import type { PostgresReads } from './postgres-reads.ts';

const KNOWN = 500_000;
const UNKNOWN = 50_000;
/** While the link is down nobody tells of a new machine: that one is unknown is believed for this long (ms). */
const UNLINKED_UNKNOWN_MS = 1000;

/** Which region a machine is in: a machine never moves, so what is known stays known. */
export class MachineRegions {
  readonly #link: CacheLink;
  readonly #postgres: PostgresReads;
  readonly #now: () => number;
  readonly #known = new LRUCache<number, number>({ max: KNOWN });
  /** Machine id → when it was found to be unknown, in milliseconds. */
  readonly #unknown = new LRUCache<number, number>({ max: UNKNOWN });
  /** Counts what makes an answer that is still on its way worthless. */
  #forgotten = 0;
  #unknownForgotten = 0;

  constructor(options: { link: CacheLink; postgres: PostgresReads; now: () => number }) {
    this.#link = options.link;
    this.#postgres = options.postgres;
    this.#now = options.now;
  }

  /** Undefined when no catalogue has given this id. @throws Unavailable */
  async of(machineId: number, keys: CacheKeys): Promise<number | undefined> {
    const known = this.#known.get(machineId);
    if (known !== undefined) return known;
    if (this.#isUnknown(machineId)) return undefined;
    const forgotten = this.#forgotten;
    const unknownForgotten = this.#unknownForgotten;
    const at = this.#now();
    const region = await this.#read(machineId, keys);
    if (forgotten !== this.#forgotten) return region;
    if (region !== undefined) this.#known.set(machineId, region);
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
