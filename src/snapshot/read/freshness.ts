import type { MaybePromise } from '../document/answer.ts';
import { loadFreshness } from '../document/load.ts';
import type { CacheLink } from './link.ts';
import type { Reads } from './postgres-reads.ts';

/** Readers receive stamps unchanged, so any other text in the cache counts as damaged. */
const STAMP = /^(?:catalogue|clusters|retired) \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?Z$/;

/** Milliseconds between two reads from Postgres while the reader is not linked. */
const READ_AGAIN_MS = 1000;

/** Epochs with stored stamps. A document of an older epoch states the time of its read. */
const EPOCHS_REMEMBERED = 100;

/** Stamps by source, and by source and region, see `loadFreshness`. Never changed. */
export type Stamps = ReadonlyMap<string, string>;

export interface KnownStamps {
  /** Named by the cache: its documents have the changes of these runs. */
  readonly cache: Stamps;
  /** Named by Postgres or the cache: these runs are committed, so Postgres has their changes. */
  readonly postgres: Stamps;
}

/** When a document was current. */
export interface ReadAt {
  /** The link's epoch before the read, or an epoch that no link has, see `OUTDATED`. */
  readonly epoch: number;
  readonly at: number;
  readonly asOf?: string | undefined;
}

export const NO_STAMPS: Stamps = new Map();
const NOTHING_KNOWN: KnownStamps = { cache: NO_STAMPS, postgres: NO_STAMPS };

export interface FreshnessOptions {
  readonly link: CacheLink;
  readonly postgres: Reads;
  readonly now: () => number;
  readonly onChange: () => void;
}

/**
 * When sources and their regions were last verified. A document that was read after a stamp was known has the changes of
 * the stamp's run, so a read takes the stamps before it takes the document (`begin`).
 *
 * A commit reaches Postgres first, and a publisher writes a stamp only after the documents that it covers. So a document
 * of Postgres states the stamps of all servers, and a document of the cache states only those of the cache.
 */
export class Freshness {
  readonly #options: FreshnessOptions;
  #known = NOTHING_KNOWN;
  /** Epoch → the newest stamps that the stream has named: every change before them is known. */
  readonly #confirmed = new Map<number, Stamps>();
  #readAt = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | undefined;
  /** Settles when there is a stamp. Each lineage has another one. */
  #firstStamp = Promise.withResolvers<void>();

  constructor(options: FreshnessOptions) {
    this.#options = options;
  }

  get known(): KnownStamps {
    return this.#known;
  }

  /** Returns the stamps whose runs are in all documents that memory has of this epoch. */
  confirmed(epoch: number): Stamps {
    return this.#confirmed.get(epoch) ?? NO_STAMPS;
  }

  /**
   * Stores stamps of the cache. Within an epoch they only move forward. In another epoch the cache may have gone back.
   * @param stamps of the stream; the first ones of an epoch are all that the cache has
   */
  update(stamps: Iterable<readonly [id: string, stamp: string]>): void {
    const { epoch } = this.#options.link;
    const valid = [...stamps].filter(([, stamp]) => STAMP.test(stamp));
    const cache = merged(this.confirmed(epoch), valid);
    this.#confirmed.set(epoch, cache);
    this.#confirmed.delete(epoch - EPOCHS_REMEMBERED);
    this.#store(cache, valid);
  }

  #store(cache: Stamps, stamps: Iterable<readonly [id: string, stamp: string]>): void {
    const before = this.#known;
    const postgres = merged(before.postgres, stamps);
    this.#known = { cache, postgres };
    if (postgres.size > 0) this.#firstStamp.resolve();
    if (cache !== before.cache || postgres !== before.postgres) this.#options.onChange();
  }

  clear(): void {
    this.#known = NOTHING_KNOWN;
    this.#confirmed.clear();
    this.#firstStamp = Promise.withResolvers();
    this.#readAt = Number.NEGATIVE_INFINITY;
    this.#options.onChange();
  }

  /** Returns the stamps for a read that begins now. It waits for the first ones of cache and Postgres. */
  begin(): MaybePromise<KnownStamps> {
    const hasStamps = this.#known.postgres.size > 0;
    const reading = this.#options.link.linked && hasStamps ? undefined : this.#readNowAndThen();
    return hasStamps && this.#known.cache.size > 0 ? this.#known : this.#firstStamps(reading);
  }

  async #firstStamps(reading: Promise<void> | undefined): Promise<KnownStamps> {
    const hasStamps = this.#known.postgres.size > 0;
    if (this.#known.cache.size === 0) await this.#readCache();
    // Postgres may be away, and the cache may name stamps first.
    if (!hasStamps) await Promise.race([reading, this.#firstStamp.promise]);
    return this.#known;
  }

  /** Returns the time of a document in memory: of its read, or a later one that its epoch has confirmed. */
  timeOf(id: string, { epoch, asOf }: ReadAt, sources: readonly string[]): string | undefined {
    return later(asOf, timeBy(this.confirmed(epoch), id, sources));
  }

  /** Returns the source whose last good run began at this time (RFC 3339); undefined if later runs have replaced it. */
  sourceAt(asOf: string): { readonly id: string; readonly isOfClusters: boolean } | undefined {
    for (const [id, stamp] of this.#known.postgres) {
      if (time(stamp) !== asOf) continue;
      return { id: id.split('/', 1)[0] ?? id, isOfClusters: stamp.startsWith('clusters ') };
    }
    return undefined;
  }

  /** Reads the stamps of Postgres at most once a second. It never fails. */
  async #readNowAndThen(): Promise<void> {
    if (this.#options.now() - this.#readAt > READ_AGAIN_MS) {
      this.#readAt = this.#options.now();
      this.#reading = this.#readPostgres();
    }
    await this.#reading;
  }

  async #readPostgres(): Promise<void> {
    const lineage = this.#firstStamp;
    const stored = await this.#options.postgres.run(loadFreshness).catch(() => undefined);
    if (stored && lineage === this.#firstStamp) this.#store(this.#known.cache, stored);
  }

  /** Before the stream is joined. Nothing confirms these stamps for documents in memory. */
  async #readCache(): Promise<void> {
    const { keys, commands } = this.#options.link;
    if (!keys) return;
    const read = await commands.run((redis) => redis.hgetall(keys.stamps));
    if (!read || this.#known.cache.size > 0 || keys !== this.#options.link.keys) return;
    const stamps = Object.entries(read).filter(([, stamp]) => STAMP.test(stamp));
    this.#store(merged(NO_STAMPS, stamps), stamps);
  }
}

/** Returns the later stamp of each source; the same map if no other stamp is later. */
export function merged(before: Stamps, others: Iterable<readonly [id: string, stamp: string]>): Stamps {
  let after: Map<string, string> | undefined;
  for (const [id, stamp] of others) {
    const known = before.get(id);
    if (known !== undefined && !isLater(stamp, known)) continue;
    after ??= new Map(before);
    after.set(id, stamp);
  }
  return after ?? before;
}

/**
 * Returns when the oldest of these sources was read; undefined while one was never read, and for tokens and price books, which no
 * source states. An empty list means every source of the document's kind.
 */
export function timeBy(stamps: Stamps, documentId: string, sources: readonly string[]): string | undefined {
  let oldest: string | undefined;
  if (sources.length === 0) {
    if (documentId.startsWith('token:') || documentId.startsWith('price-book:')) return undefined;
    const kind = documentId.startsWith('clusters:') ? 'clusters' : 'catalogue';
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

/** Limits the time of an unconfirmed document, which may have changed since it was last current. @param knownAt ms */
export function boundedBy(knownAt: number | undefined, asOf: string | undefined): string | undefined {
  if (asOf === undefined || knownAt === undefined || Date.parse(asOf) <= knownAt) return asOf;
  return new Date(knownAt).toISOString();
}

export function later(a: string | undefined, b: string | undefined): string | undefined {
  return a === undefined || (b !== undefined && b > a) ? b : a;
}

const time = (stamp: string): string => stamp.slice(stamp.indexOf(' ') + 1);

/** Compares by time. At the same time a retired source stays retired. */
function isLater(a: string, b: string): boolean {
  return time(a) === time(b) ? a > b : time(a) > time(b);
}

function earlier(a: string | undefined, b: string): string {
  return a === undefined || time(b) < time(a) ? b : a;
}
