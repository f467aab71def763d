/** The tiers below memory: cache and Postgres. */

import type { Logger } from 'pino';
import { isTracing, traced } from '../../domain/tracer.ts';
import type { RedisClient } from '../../redis/redis.ts';
import { type MaybePromise, type Tier, Unavailable } from '../document/answer.ts';
import type { Document } from '../document/document.ts';
import { encoding, HEADER_LENGTH, isForeignFormat, parseHeader } from '../document/format.ts';
import { type CacheKeys, type DocumentName, documentId } from '../document/keys.ts';
import { loadContent, loadVersion } from '../document/load.ts';
import { decodeForMemory } from '../document/token-document.ts';
import { dropValue } from '../publish/fence.ts';
import { type CacheCommands, Late, type OnReply, type Reply } from './cache.ts';
import { type KnownStamps, type ReadAt, timeBy } from './freshness.ts';
import type { CacheLink } from './link.ts';
import type { Reads } from './postgres-reads.ts';

/** A document, or undefined for none, and the tier that answered. */
export interface TieredResult {
  readonly document: Document | undefined;
  readonly tier: Tier;
  /** When its sources were last verified: the document has every change until then. */
  readonly asOf?: string | undefined;
  /** Set if memory answered and every change reaches it: the id whose invalidation ends the result. */
  readonly invalidatedBy?: string | undefined;
  /** Postgres answered, and can name its lineage. */
  readonly isOfPostgres?: boolean;
  /** Set for an unconfirmed document: when it was last current, in milliseconds. */
  readonly knownAt?: number | undefined;
}

/** Runs the read of a document from Postgres under limits of the caller. */
export type LookUp = <T>(read: () => Promise<T | undefined>) => Promise<T | undefined>;

export interface Wanted {
  readonly keys: CacheKeys;
  readonly name: DocumentName;
  readonly id: string;
  /** The document in memory. A tier with the same version confirms it without sending it. */
  readonly cached: Document | undefined;
  /** The oldest version that may be served. */
  readonly atLeast: number;
  readonly stamps: KnownStamps;
  readonly lookUp: LookUp | undefined;
}

export interface Served extends ReadAt {
  readonly document: Document | undefined;
  /** A cache that publishers reach has the same document. */
  readonly isOfCache?: boolean;
}

export interface DocumentListener {
  onPublished?(id: string, version: number): void;
  onServed?(wanted: Wanted, served: Served): void;
  onLineage?(lineage: string): void;
}

export interface DocumentTier extends DocumentListener {
  /** Returns the current document. @throws Unavailable */
  read(wanted: Wanted): Promise<TieredResult>;
}

/** One server of Postgres, or a replica and its primary. */
export interface PostgresSource {
  readonly reads: Reads;
  /** Opens the tier; a `PostgresTier` by default. @param writeBack offers documents of the primary to the cache */
  tier?(writeBack: CacheCommands['writeBack']): DocumentTier;
}

export interface TiersOptions {
  readonly postgres: PostgresSource;
  readonly link: CacheLink;
  readonly logger: Logger;
  readonly onUnusable?: ((kind: DocumentName['kind']) => void) | undefined;
}

export class Tiers {
  readonly #cache: CacheTier;
  readonly #postgres: DocumentTier;

  constructor({ link, postgres, logger, onUnusable }: TiersOptions) {
    const onUnusableValue = (name: DocumentName) => {
      onUnusable?.(name.kind);
      logger.warn({ document: documentId(name) }, 'a value in the cache cannot be used; it is replaced');
    };
    const { commands } = link;
    this.#cache = new CacheTier(link, onUnusableValue);
    const writeBack = commands.writeBack.bind(commands);
    this.#postgres = postgres.tier?.(writeBack) ?? new PostgresTier(postgres.reads, writeBack);
  }

  /**
   * Reads the cache, and Postgres too once the cache is late. Without publishers only Postgres is current, and the cache answers
   * if Postgres does not.
   * @throws Unavailable
   */
  read(wanted: Wanted): Promise<TieredResult> {
    if (this.#cache.isCurrent) return this.#cache.read(wanted, () => this.#postgres.read(wanted));
    return this.#readPostgres(wanted);
  }

  async #readPostgres(wanted: Wanted): Promise<TieredResult> {
    try {
      return await this.#postgres.read(wanted);
    } catch (error) {
      const found = error instanceof Unavailable ? await this.#cache.recall(wanted) : undefined;
      if (!found) throw error;
      return found;
    }
  }

  onPublished(id: string, version: number): void {
    this.#postgres.onPublished?.(id, version);
  }

  onServed(wanted: Wanted, served: Served): void {
    this.#postgres.onServed?.(wanted, served);
  }

  onLineage(lineage: string): void {
    this.#postgres.onLineage?.(lineage);
  }
}

/** The documents in Redis. They are current while publishers reach it. */
class CacheTier {
  readonly #link: CacheLink;
  readonly #commands: CacheCommands;
  readonly #onUnusable: (name: DocumentName) => void;

  constructor(link: CacheLink, onUnusable: (name: DocumentName) => void) {
    this.#link = link;
    this.#commands = link.commands;
    this.#onUnusable = onUnusable;
  }

  /** True while every change reaches the cache, and this reader. */
  get isCurrent(): boolean {
    return this.#link.linked;
  }

  /** Reads a cache that publishers reach, and Postgres too once the cache is late. @throws Unavailable of Postgres */
  read(wanted: Wanted, fromPostgres: () => Promise<TieredResult>): Promise<TieredResult> {
    const { cached, atLeast } = wanted;
    if (cached && cached.version >= atLeast) return this.#compare(wanted, cached, fromPostgres);
    return this.#read(wanted, fromPostgres);
  }

  #read(wanted: Wanted, fromPostgres: () => Promise<TieredResult>): Promise<TieredResult> {
    return this.#commands.hedge(
      (onReply: OnReply<Buffer | null>) => this.#get(wanted, onReply),
      (value) => this.#accept(wanted, value),
      fromPostgres,
    );
  }

  /** Reads a cache that publishers may not reach: its document was current at their last heartbeat. */
  async recall(wanted: Wanted): Promise<TieredResult | undefined> {
    const knownAt = this.isCurrent ? undefined : this.#link.lastHeartbeatAt;
    const reply = await new Promise<Reply<Buffer | null>>((resolve) => this.#get(wanted, resolve));
    const found = this.#accept(wanted, reply instanceof Late ? await reply.reply : reply);
    return found && { ...found, knownAt };
  }

  /** Reads the version alone, and the document if memory has another version. */
  #compare(
    wanted: Wanted,
    cached: Document,
    fromPostgres: () => Promise<TieredResult>,
  ): Promise<TieredResult> {
    const { keys, id, atLeast, stamps } = wanted;
    const header = (redis: RedisClient) => redis.getrangeBuffer(keys.document(id), 0, HEADER_LENGTH - 1);
    let stored: Promise<TieredResult> | undefined;
    const postgres = () => {
      stored ??= fromPostgres();
      return stored;
    };
    return this.#commands.hedge(
      (onReply: OnReply<Buffer>) => this.#commands.read(header, onReply),
      (bytes): MaybePromise<TieredResult | undefined> => {
        const version = (bytes && parseHeader(bytes)?.version) ?? 0;
        // The cache has lost the version of memory, or rejected the announced one.
        if (version < atLeast) return undefined;
        if (version === cached.version)
          return { document: cached, tier: 'memory', asOf: timeBy(stamps.cache, id, cached.sources) };
        return this.#read(wanted, postgres);
      },
      postgres,
    );
  }

  #get({ keys, name, id }: Wanted, onReply: OnReply<Buffer | null>): void {
    const key = keys.document(id);
    if (!isTracing()) {
      this.#commands.get(key, onReply);
      return;
    }
    // One command may read documents of several requests, so each document has a span.
    const attributes = { 'db.system.name': 'redis', 'fleetbook.document': name.kind };
    void traced('cache read', attributes, async () =>
      onReply(await new Promise<Reply<Buffer | null>>((resolve) => this.#commands.get(key, resolve))),
    );
  }

  /** Returns the document of a value; undefined for none that is current. An unusable value is removed: the fence would keep it. */
  #accept(
    { keys, name, id, atLeast, stamps }: Wanted,
    value: Buffer | null | undefined,
  ): TieredResult | undefined {
    if (!value) return undefined;
    const document = decodeForMemory(id, value);
    if (document) {
      if (document.version < atLeast) return undefined;
      return { document, tier: 'redis', asOf: timeBy(stamps.cache, id, document.sources) };
    }
    if (isForeignFormat(value)) return undefined;
    this.#onUnusable(name);
    // Sent before the value of Postgres.
    void this.#commands.run((redis) => dropValue(redis, keys.document(id), value));
    return undefined;
  }
}

/** The documents of one server of Postgres, which are current. */
export class PostgresTier implements DocumentTier {
  readonly #postgres: Pick<Reads, 'run'>;
  readonly #writeBack: CacheCommands['writeBack'];

  constructor(postgres: Pick<Reads, 'run'>, writeBack: CacheCommands['writeBack']) {
    this.#postgres = postgres;
    this.#writeBack = writeBack;
  }

  async read(wanted: Wanted): Promise<TieredResult> {
    const { name, id, cached, stamps } = wanted;
    if (!cached) return this.load(wanted);
    const version = await this.#postgres.run((sql) => loadVersion(sql, name));
    if (version !== cached.version) return this.load(wanted);
    const asOf = timeBy(stamps.postgres, id, cached.sources);
    return { document: cached, tier: 'memory', asOf, isOfPostgres: true };
  }

  /** Reads the document, whatever memory has. */
  async load({ keys, name, id, cached, lookUp, stamps }: Wanted): Promise<TieredResult> {
    const load = () =>
      this.#postgres.run(async (sql) => {
        const content = await loadContent(sql, name);
        return content && encoding(content);
      });
    const encoded = await (lookUp && !cached ? lookUp(load) : load());
    const document = encoded?.document;
    const asOf = timeBy(stamps.postgres, id, document?.sources ?? []);
    // The answer does not wait for the compressed codings of the cache's value.
    if (encoded) this.#writeBack(keys, name, encoded.document.version, () => encoded.value());
    return { document, tier: 'postgres', asOf, isOfPostgres: true };
  }
}
