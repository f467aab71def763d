import type { DiskCopy } from '../disk/disk-copy.ts';
import type { MaybePromise } from '../document/answer.ts';
import { loadFreshness } from '../document/load.ts';
import type { CacheSubscription } from './cache-subscription.ts';
import { UNLINKED_MAX_AGE_MS } from './consistency.ts';
import type { PostgresReads } from './postgres/postgres-reads.ts';
import type { ReplicaReads } from './postgres/replica-reads.ts';

/** Anything else in the cache is damaged: stamps are given to readers as they are. */
const STAMP = /^(?:catalogue|clusters|retired) \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?Z$/;

/** Milliseconds between two reads from Postgres while the cache tells nothing. */
const READ_AGAIN_MS = 1000;

export interface FreshnessOptions {
  readonly subscription: CacheSubscription;
  readonly postgres: PostgresReads | ReplicaReads;
  readonly now: () => number;
  /** Keeps stamps, and has some when nobody else does. */
  readonly copy?: Pick<DiskCopy, 'keepStamp' | 'stamps'> | undefined;
  /** Called when any stamp has changed. */
  readonly onChange: () => void;
}

type Kind = 'catalogue' | 'clusters';
type Stamps = Map<string, string>;
type StampEntries = readonly (readonly [id: string, stamp: string])[];

/**
 * When sources and their regions were last verified. The cache and Postgres each have their own stamps, because a commit
 * reaches Postgres first. A reader that trusts the cache states the cache's stamps: a publisher writes a stamp only after
 * the documents that it covers.
 */
export class Freshness {
  readonly #subscription: CacheSubscription;
  readonly #postgres: PostgresReads | ReplicaReads;
  readonly #now: () => number;
  readonly #copy: FreshnessOptions['copy'];
  readonly #onChange: () => void;
  /** See `loadFreshness`. */
  readonly #ofCache: Stamps = new Map();
  /** The same by Postgres. An entry ends when the cache has one for its source. */
  readonly #ofPostgres: Stamps = new Map();
  #readAt = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | undefined;
  /** Settles when there is a stamp. */
  #firstStamp = Promise.withResolvers<void>();

  constructor(options: FreshnessOptions) {
    this.#subscription = options.subscription;
    this.#postgres = options.postgres;
    this.#now = options.now;
    this.#copy = options.copy;
    this.#onChange = options.onChange;
  }

  /** Stores stamps of the cache that this reader is linked to. A stamp only moves forward: a flush takes nothing back. */
  update(stamps: StampEntries): void {
    this.#store(this.#ofCache, stamps);
  }

  /** Stores stamps of the cache while this reader is not linked: they wait until memory was compared after them. */
  learn(stamps: StampEntries): void {
    this.#storeLater(this.#ofCache, stamps);
  }

  #store(target: Stamps, stamps: StampEntries): void {
    let isChanged = false;
    for (const [id, stamp] of stamps) {
      if (!STAMP.test(stamp)) continue;
      if (target === this.#ofCache && this.#subscription.linked) this.#ofPostgres.delete(id);
      const known = target.get(id);
      if (known !== undefined && !isLater(stamp, known)) continue;
      target.set(id, stamp);
      this.#copy?.keepStamp(id, stamp);
      isChanged = true;
    }
    if (this.#hasStamps) this.#firstStamp.resolve();
    if (isChanged) this.#onChange();
  }

  #storeLater(target: Stamps, stamps: StampEntries): void {
    if (!this.#hasStamps) {
      this.#store(target, stamps);
      return;
    }
    const stampsThen = this.#firstStamp;
    setTimeout(() => {
      // Otherwise another lineage has begun.
      if (stampsThen === this.#firstStamp) this.#store(target, stamps);
    }, UNLINKED_MAX_AGE_MS).unref();
  }

  clear(): void {
    this.#ofCache.clear();
    this.#ofPostgres.clear();
    this.#firstStamp = Promise.withResolvers();
    this.#readAt = Number.NEGATIVE_INFINITY;
    this.#onChange();
  }

  get #hasStamps(): boolean {
    return this.#ofCache.size + this.#ofPostgres.size > 0;
  }

  /** Yields each stamp that answers state now. */
  *known(): Generator<readonly [id: string, stamp: string]> {
    for (const id of new Set([...this.#ofCache.keys(), ...this.#ofPostgres.keys()])) {
      const stamp = this.#stampOf(id);
      if (stamp !== undefined) yield [id, stamp];
    }
  }

  #stampOf(id: string): string | undefined {
    const cached = this.#ofCache.get(id);
    const stored = this.#ofPostgres.get(id);
    if (cached === undefined || stored === undefined) return cached ?? stored;
    const { isConnected, publisher } = this.#subscription;
    const trustsCache = isConnected && publisher === 'heard';
    return trustsCache || !isLater(stored, cached) ? cached : stored;
  }

  /** True while every change of a stamp arrives as it happens. */
  get isCurrent(): boolean {
    return this.#subscription.linked && this.#hasStamps;
  }

  /**
   * When the oldest of these sources, or regions of sources, was read, RFC 3339; undefined while one of them never was.
   * An empty list means every source of the kind. At once if there is any stamp.
   */
  get(sources: readonly string[], kind: Kind): MaybePromise<string | undefined> {
    if (this.isCurrent) return this.getKnown(sources, kind);
    const reading = this.#readNowAndThen();
    if (this.#hasStamps) return this.getKnown(sources, kind);
    // Postgres may be away, and the cache may tell meanwhile.
    return Promise.race([reading, this.#firstStamp.promise]).then(() => this.getKnown(sources, kind));
  }

  /** As `get`, by the stamps that are here. */
  getKnown(sources: readonly string[], kind: Kind): string | undefined {
    return oldestOf({ get: (id) => this.#stampOf(id), [Symbol.iterator]: () => this.known() }, sources, kind);
  }

  /** Reads the stamps of cache and Postgres, unless that was tried a moment ago; never fails. */
  async #readNowAndThen(): Promise<void> {
    if (this.#now() - this.#readAt > READ_AGAIN_MS) {
      this.#readAt = this.#now();
      this.#reading = this.#read();
    }
    await this.#reading;
  }

  async #read(): Promise<void> {
    const { keys, publisher } = this.#subscription;
    const ask: CacheSubscription['ask'] = (command) => this.#subscription.ask(command);
    const [cached, stored] = await Promise.all([
      // Without a publisher the documents are those of Postgres, and so are the times.
      keys && publisher !== 'silent' ? ask((redis) => redis.hgetall(keys.verified)) : undefined,
      this.#postgres.run(loadFreshness).catch(() => undefined),
    ]);
    // The stamps of Postgres come second: an answer of the cache never states them as the first ones.
    if (cached) this.#storeLater(this.#ofCache, Object.entries(cached));
    if (stored) this.#storeLater(this.#ofPostgres, [...stored]);
    else if (this.#copy && !this.#hasStamps) this.#store(this.#ofPostgres, await this.#copy.stamps());
  }
}

/** As `Freshness.getKnown`, by these stamps. */
export function oldestOf(
  stamps: Pick<ReadonlyMap<string, string>, 'get'> & Iterable<readonly [id: string, stamp: string]>,
  sources: readonly string[],
  kind: Kind,
): string | undefined {
  let oldest: string | undefined;
  if (sources.length === 0) {
    for (const [id, stamp] of stamps) {
      if (stamp.startsWith(`${kind} `) && !id.includes('/')) oldest = earlier(oldest, stamp);
    }
  } else {
    for (const source of sources) {
      const stamp = stamps.get(source);
      if (stamp === undefined) return undefined;
      oldest = earlier(oldest, stamp);
    }
  }
  return oldest === undefined ? undefined : time(oldest);
}

/**
 * The time that an answer may state. What nobody confirms now may have changed since it was last known to be true, however
 * lately its sources were read: it is no younger than that.
 * @param knownAt milliseconds; undefined where it is known to be true now
 */
export function boundedBy(knownAt: number | undefined, asOf: string | undefined): string | undefined {
  if (asOf === undefined || knownAt === undefined || Date.parse(asOf) <= knownAt) return asOf;
  return new Date(knownAt).toISOString();
}

const time = (stamp: string): string => stamp.slice(stamp.indexOf(' ') + 1);

/** By time; at the same time a retired source stays retired. */
function isLater(a: string, b: string): boolean {
  return time(a) === time(b) ? a > b : time(a) > time(b);
}

function earlier(a: string | undefined, b: string): string {
  return a === undefined || time(b) < time(a) ? b : a;
}
