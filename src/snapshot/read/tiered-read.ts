import { traced } from '../../db/traced.ts';
import { type Tier, Unavailable } from '../document/answer.ts';
import type { Document } from '../document/document.ts';
import { decodeDocument, encoding, HEADER_LENGTH, isForeignFormat, parseHeader } from '../document/format.ts';
import { type CacheKeys, type DocumentName, documentId } from '../document/keys.ts';
import { loadContent, loadVersion } from '../document/load.ts';
import { dropValue } from '../publish/fence.ts';
import type { CacheSubscription } from './cache-subscription.ts';
import { fromEither } from './either.ts';
import { MgetBatcher } from './mget-batcher.ts';
import type { PostgresReads, Told } from './postgres-reads.ts';
import type { ReplicaReads } from './replica-reads.ts';

/** A document, or the knowledge that there is none, and the tier that answered. */
export interface TieredResult {
  readonly document: Document | undefined;
  readonly tier: Tier;
  /** Set where memory answered at once and hears of every change: the id whose invalidation ends the result. */
  readonly invalidatedBy?: string | undefined;
  /** What a replica of Postgres has said. Set beside it where nobody can say what it lacks: since when, in milliseconds. */
  readonly isOfReplica?: boolean;
  /** Set where nobody confirms it now: when it was last known to be true, in milliseconds. */
  readonly knownAt?: number;
  /** Also set for a document of a cache that no publisher reaches: when the last one was heard. */
  readonly unsureSince?: number | undefined;
}

/** What is known of a document before it is read. */
export interface Known {
  /** The document that memory has. */
  readonly cached: Document | undefined;
  /** The newest version that was heard of; 0 for none. A cache that refuses writes may have an older one. */
  readonly heard: number;
}

/** Runs a read from Postgres of something that memory does not have, under limits of the caller's. */
export type LookUp = <T>(read: () => Promise<T | undefined>) => Promise<T | undefined>;

export interface TieredReadOptions {
  readonly subscription: CacheSubscription;
  readonly postgres: PostgresReads | ReplicaReads;
  /** Hears of each value of the cache that cannot be used. */
  readonly onUnusable: (name: DocumentName) => void;
}

/** The tiers behind memory: the cache, then Postgres, whose answer is offered to the cache. */
export class TieredRead {
  readonly #subscription: CacheSubscription;
  readonly #batcher: MgetBatcher;
  readonly #postgres: PostgresReads | ReplicaReads;
  readonly #onUnusable: (name: DocumentName) => void;

  constructor({ subscription, postgres, onUnusable }: TieredReadOptions) {
    this.#subscription = subscription;
    this.#onUnusable = onUnusable;
    this.#batcher = new MgetBatcher(subscription);
    this.#postgres = postgres;
  }

  /**
   * The document that memory has, if nothing newer exists, else the newer one. Rejects with `Unavailable`.
   */
  async read(
    keys: CacheKeys,
    name: DocumentName,
    { cached, heard }: Known,
    lookUp: LookUp | undefined,
  ): Promise<TieredResult> {
    const key = keys.document(name);
    const atLeast = Math.max(heard, cached?.version ?? 0);
    const fromPostgres = () => this.fromPostgres(keys, name, cached, lookUp);
    if (this.#subscription.publisher !== 'heard')
      return this.#withoutPublisher(key, name, atLeast, fromPostgres);
    if (cached) {
      const version = await this.#versionInCache(key);
      // The cache has lost what memory has, or has not taken what was announced: only Postgres knows what is true.
      if (version !== undefined && version < atLeast) return fromPostgres();
      if (version === cached.version) return { document: cached, tier: 'memory' };
      if (version === undefined) return this.#fromEither(key, name, atLeast, fromPostgres);
    }
    const found = await this.#inCache(key, name, atLeast);
    if (found) return found;
    return found === null ? fromPostgres() : this.#fromEither(key, name, atLeast, fromPostgres);
  }

  /**
   * Reads Postgres, since no publisher reaches the cache. If the first pulse comes during the read, it trusts the cache. If
   * Postgres fails, it gives the cache's document, which was known to be true until the last pulse.
   */
  async #withoutPublisher(
    key: string,
    name: DocumentName,
    atLeast: number,
    fromPostgres: () => Promise<TieredResult>,
  ): Promise<TieredResult> {
    const subscription = this.#subscription;
    const trusted = async () =>
      subscription.publisher === 'heard' ? this.#inCache(key, name, atLeast) : undefined;
    try {
      if (subscription.publisher === 'silent') return await fromPostgres();
      return await fromEither(subscription, trusted, fromPostgres);
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error;
      const knownAt = subscription.publisherHeardAt;
      const found = await this.#inCache(key, name, atLeast);
      if (!found) throw error;
      return { ...found, knownAt, unsureSince: knownAt };
    }
  }

  #fromEither(
    key: string,
    name: DocumentName,
    atLeast: number,
    fromPostgres: () => Promise<TieredResult>,
  ): Promise<TieredResult> {
    return fromEither(this.#subscription, () => this.#inCache(key, name, atLeast), fromPostgres);
  }

  /**
   * The document that the cache has; null when it has none as new as it has to be, undefined while it does not answer. A
   * value that cannot be used is none, and leaves the cache, where the fence would keep it.
   */
  async #inCache(key: string, name: DocumentName, atLeast: number): Promise<TieredResult | null | undefined> {
    // Its own span: the command that reads it may be that of another request's trace, or of none.
    const value = await traced('cache read', { 'fleetbook.document': name.kind }, () =>
      this.#batcher.read(key),
    );
    if (!value) return value;
    const own = ownBytes(value);
    const document = decodeDocument(name, own);
    if (document) return document.version < atLeast ? null : { document, tier: 'redis' };
    if (isForeignFormat(own)) return null;
    this.#onUnusable(name);
    await this.#subscription.ask((redis) => dropValue(redis, key, own));
    return null;
  }

  /** 0 for none that can be read, undefined while the cache does not answer. */
  async #versionInCache(key: string): Promise<number | undefined> {
    const header = await this.#subscription.ask((redis) => redis.getrangeBuffer(key, 0, HEADER_LENGTH - 1));
    return header && (parseHeader(header)?.version ?? 0);
  }

  /** As `read`, where it is known that the cache is behind. */
  async fromPostgres(
    keys: CacheKeys,
    name: DocumentName,
    cached: Document | undefined,
    lookUp: LookUp | undefined,
  ): Promise<TieredResult> {
    const id = documentId(name);
    const atLeast = cached?.version ?? 0;
    if (cached) {
      const { result: version, ...by } = await this.#postgres.ask(
        (sql) => loadVersion(sql, name),
        (found, believes) =>
          (found ?? 0) >= atLeast && believes.version(id, found) && believes.stamps(cached.sources),
      );
      if (version === cached.version) return { document: cached, tier: 'memory', ...by };
    }
    let by: Omit<Told<unknown>, 'result'> = { isOfReplica: false };
    const load = async () => {
      const { result, ...told } = await this.#postgres.ask(
        async (sql) => {
          const content = await loadContent(sql, name);
          return content && encoding(content);
        },
        (found, believes) =>
          found !== undefined &&
          found.document.version >= atLeast &&
          believes.version(id, found.document.version) &&
          believes.stamps(found.document.sources),
      );
      by = told;
      return result;
    };
    const encoded = await (lookUp && !cached ? lookUp(load) : load());
    if (!encoded) return { document: undefined, tier: 'postgres', ...by };
    const { document } = encoded;
    // The answer does not wait for the codings that the cache gets. Other readers may know of more than the replica has.
    if (!by.isOfReplica) this.#subscription.writeBack(keys, name, document.version, () => encoded.value());
    return { document, tier: 'postgres', ...by };
  }
}

/** The value in memory of its own: a reply of the cache may be a view of a whole packet, and would keep all of it. */
function ownBytes(value: Buffer): Buffer {
  if (value.buffer.byteLength <= value.length * 1.25) return value;
  const own = Buffer.allocUnsafeSlow(value.length);
  value.copy(own);
  return own;
}
