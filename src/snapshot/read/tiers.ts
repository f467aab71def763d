/** The tiers below memory: the cache and Postgres, and what all tiers have in common. */

import { traced } from '../../domain/tracer.ts';
import type { Tier } from '../document/answer.ts';
import type { Document } from '../document/document.ts';
import { decodeDocument, encoding, HEADER_LENGTH, isForeignFormat, parseHeader } from '../document/format.ts';
import type { CacheKeys, DocumentName } from '../document/keys.ts';
import { loadContent, loadVersion } from '../document/load.ts';
import { dropValue } from '../publish/fence.ts';
import type { CacheCommands } from './cache.ts';
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

/** Null: the cache has no current document. Undefined: it does not answer. */
type Found = TieredResult | null | undefined;

/** The documents in Redis. They are current while publishers reach it. */
export class CacheTier {
  readonly #subscription: CacheLink;
  readonly #get: ReturnType<typeof mgetBatcher>;
  readonly #onUnusable: (name: DocumentName) => void;

  constructor(subscription: CacheLink, onUnusable: (name: DocumentName) => void) {
    this.#subscription = subscription;
    this.#onUnusable = onUnusable;
    const { commands } = subscription;
    this.#get = mgetBatcher(commands.read.bind(commands));
  }

  /** True while every change reaches the cache, and this reader. */
  get isCurrent(): boolean {
    return this.#subscription.linked;
  }

  /** Reads a cache that publishers reach. */
  read(wanted: Wanted): Promise<Found> {
    return wanted.cached ? this.#confirm(wanted, wanted.cached) : this.#read(wanted);
  }

  /** Reads a cache that publishers may not reach: its document was current at their last heartbeat. */
  async recall(wanted: Wanted): Promise<Found> {
    if (this.isCurrent) return this.read(wanted);
    const knownAt = this.#subscription.lastHeartbeatAt;
    const found = await this.#read(wanted);
    return found && { ...found, knownAt };
  }

  /** Reads the version alone, and the document if memory has another version. */
  async #confirm(wanted: Wanted, cached: Document): Promise<Found> {
    const { keys, name, id, atLeast, stamps } = wanted;
    const key = keys.document(name);
    const header = await this.#subscription.commands.read((redis) =>
      redis.getrangeBuffer(key, 0, HEADER_LENGTH - 1),
    );
    if (!header) return undefined;
    const version = parseHeader(header)?.version ?? 0;
    // The cache has lost the version of memory, or rejected the announced one.
    if (version < atLeast) return null;
    if (version !== cached.version) return this.#read(wanted);
    return { document: cached, tier: 'memory', asOf: timeBy(stamps.cache, id, cached.sources) };
  }

  /** Reads the document. An unusable value is removed, because the fence would keep it. */
  async #read({ keys, name, id, atLeast, stamps }: Wanted): Promise<Found> {
    const key = keys.document(name);
    // One command may read documents of several requests, so each document has a span.
    const attributes = { 'db.system.name': 'redis', 'fleetbook.document': name.kind };
    const value = await traced('cache read', attributes, () => this.#get(key));
    if (!value) return value;
    const document = decodeDocument(name, value);
    if (document) {
      if (document.version < atLeast) return null;
      const asOf = timeBy(stamps.cache, id, document.sources);
      return { document, tier: 'redis', asOf };
    }
    if (isForeignFormat(value)) return null;
    this.#onUnusable(name);
    await this.#subscription.commands.run((redis) => dropValue(redis, key, value));
    return null;
  }
}

/** Documents in one command. With more, the first waits long for the last. */
const AT_ONCE = 16;

/** Undefined if the cache did not answer, null if it has no value. */
type Value = Buffer | null | undefined;

interface Command {
  readonly keys: string[];
  readonly resolvers: ((value: Value) => void)[];
}

/**
 * Returns a function that reads values from the cache, and never fails. All reads of one turn of the event loop are one
 * command: under load the client's work for a command is a large part of a miss.
 */
function mgetBatcher(read: CacheCommands['read']): (key: string) => Promise<Value> {
  let open: Command | undefined;

  function begin(): Command {
    const command: Command = { keys: [], resolvers: [] };
    setImmediate(() => {
      if (open === command) void send(command);
    });
    return command;
  }

  async function send({ keys, resolvers }: Command): Promise<void> {
    open = undefined;
    const values = await read((redis) => redis.mgetBuffer(keys));
    for (const [i, resolve] of resolvers.entries()) resolve(values?.[i]);
  }

  return (key) =>
    new Promise((resolve) => {
      open ??= begin();
      open.keys.push(key);
      open.resolvers.push(resolve);
      if (open.keys.length === AT_ONCE) void send(open);
    });
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
