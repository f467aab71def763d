import type { DiskCopy } from '../disk/disk-copy.ts';
import type { MaybePromise } from '../document/answer.ts';
import { loadFreshness } from '../document/load.ts';
import type { CacheSubscription } from './cache-subscription.ts';
import { UNLINKED_MAX_AGE_MS } from './memory.ts';
import type { PostgresReads } from './postgres-reads.ts';
import type { ReplicaReads } from './replica-reads.ts';

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
  /** Called with each stamp that moves, by its source, or source and region. */
  readonly onStamp?: ((id: string, stamp: string) => void) | undefined;
  /** Called when any stamp has changed. */
  readonly onChange: () => void;
}

type Kind = 'catalogue' | 'clusters';

/** When sources and their regions were last read well, as this reader has heard: from the cache, else from Postgres. */
export class Freshness {
  readonly #subscription: CacheSubscription;
  readonly #postgres: PostgresReads | ReplicaReads;
  readonly #now: () => number;
  readonly #copy: FreshnessOptions['copy'];
  readonly #onStamp: (id: string, stamp: string) => void;
  readonly #onChange: () => void;
  /** See `loadFreshness`. */
  readonly #stamps = new Map<string, string>();
  #readAt = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | undefined;
  /** Settles when there is a stamp. */
  #firstStamp = Promise.withResolvers<void>();

  constructor(options: FreshnessOptions) {
    this.#subscription = options.subscription;
    this.#postgres = options.postgres;
    this.#now = options.now;
    this.#copy = options.copy;
    this.#onStamp = options.onStamp ?? (() => {});
    this.#onChange = options.onChange;
  }

  /** Adds stamps. A stamp only moves forward: a cache that was flushed takes nothing back. */
  update(stamps: Iterable<readonly [string, string]>): void {
    let isChanged = false;
    for (const [id, stamp] of stamps) {
      const known = this.#stamps.get(id);
      if (stamp === known || !STAMP.test(stamp) || (known !== undefined && !isLater(stamp, known))) continue;
      this.#stamps.set(id, stamp);
      this.#copy?.keepStamp(id, stamp);
      this.#onStamp(id, stamp);
      isChanged = true;
    }
    if (this.#stamps.size > 0) this.#firstStamp.resolve();
    if (isChanged) this.#onChange();
  }

  /** As `update`, while nobody tells of changes: the stamps wait until all that memory may give was compared after them. */
  learn(stamps: readonly (readonly [string, string])[]): void {
    if (this.#stamps.size === 0) {
      this.update(stamps);
      return;
    }
    const stampsThen = this.#firstStamp;
    setTimeout(() => {
      // Otherwise another lineage has begun.
      if (stampsThen === this.#firstStamp) this.update(stamps);
    }, UNLINKED_MAX_AGE_MS).unref();
  }

  clear(): void {
    this.#stamps.clear();
    this.#firstStamp = Promise.withResolvers();
    this.#readAt = Number.NEGATIVE_INFINITY;
    this.#onChange();
  }

  /** Every stamp that is here. */
  known(): Iterable<readonly [id: string, stamp: string]> {
    return this.#stamps;
  }

  /** True while every change of a stamp arrives as it happens. */
  get isCurrent(): boolean {
    return this.#subscription.linked && this.#stamps.size > 0;
  }

  /**
   * When the oldest of these sources, or regions of sources, was read, RFC 3339; undefined while one of them never was.
   * An empty list means every source of the kind. At once if there is any stamp.
   */
  get(sources: readonly string[], kind: Kind): MaybePromise<string | undefined> {
    if (this.isCurrent) return this.getKnown(sources, kind);
    const reading = this.#readNowAndThen();
    if (this.#stamps.size > 0) return this.getKnown(sources, kind);
    // Postgres may be away, and the cache may tell meanwhile.
    return Promise.race([reading, this.#firstStamp.promise]).then(() => this.getKnown(sources, kind));
  }

  /** As `get`, by the stamps that are here. */
  getKnown(sources: readonly string[], kind: Kind): string | undefined {
    return oldestOf(this.#stamps, sources, kind);
  }

  /** Reads Postgres, unless that was tried a moment ago; never fails. */
  async #readNowAndThen(): Promise<void> {
    if (this.#now() - this.#readAt > READ_AGAIN_MS) {
      this.#readAt = this.#now();
      this.#reading = this.#read().then(
        (stamps) => this.learn(stamps),
        () => this.#readFromCopy(),
      );
    }
    await this.#reading;
  }

  /**
   * What the cache says counts more: its documents may be behind Postgres, and so are its times. Rejects when neither
   * answers.
   */
  async #read(): Promise<[id: string, stamp: string][]> {
    const { keys, publisher } = this.#subscription;
    const ask: CacheSubscription['ask'] = (command) => this.#subscription.ask(command);
    const [inCache, stored] = await Promise.all([
      // Without a publisher the documents are those of Postgres, and so are the times.
      keys && publisher !== 'silent' ? ask((redis) => redis.hgetall(keys.verified)) : undefined,
      this.#postgres.run(loadFreshness).catch((error: unknown) => ({ error })),
    ]);
    const told = Object.entries(inCache ?? {}).filter(([, stamp]) => STAMP.test(stamp));
    if (!('error' in stored)) return [...new Map([...stored, ...told])];
    if (told.length === 0) throw stored.error;
    return told;
  }

  async #readFromCopy(): Promise<void> {
    if (this.#copy && this.#stamps.size === 0) this.update(await this.#copy.stamps());
  }
}

/** As `Freshness.getKnown`, by these stamps. */
export function oldestOf(
  stamps: ReadonlyMap<string, string>,
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
