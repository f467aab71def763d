import type { Sql } from '../../db/connection/connect.ts';
import { steadyNow } from '../../domain/clock.ts';
import { type InvalidationListener, type MaybePromise, Unavailable } from '../document/answer.ts';
import type { Document } from '../document/document.ts';
import { type CacheKeys, type DocumentName, documentId, FEED_ID } from '../document/keys.ts';
import { loadTokenVersions } from '../document/load.ts';
import { formForMemory, TOKEN } from '../document/token-document.ts';
import { BYTES_PER_DOCUMENT, type MemoryBudget } from './budget.ts';
import { Consistency } from './consistency.ts';
import { Freshness, later } from './freshness.ts';
import { CurrentLineage } from './lineage.ts';
import { MachineRegions } from './machine-regions.ts';
import { DocumentMemory, type DumpContent, type DumpedDocument } from './memory.ts';
import type { ReadOptions, Reads } from './postgres-reads.ts';
import { type LookUp, type TieredResult, Tiers, type TiersOptions } from './tiers.ts';
import { TokenMemory } from './token-memory.ts';

/** Receives each publication, also of a feed position, and each change of lineage. */
export interface PublicationListener {
  onPublished(id: string, version: number): void;
  onLineage(): void;
}

export interface DocumentsOptions extends TiersOptions {
  readonly now?: () => number;
  readonly memory: Pick<MemoryBudget, 'documents' | 'machineRegions' | 'unknownTokens'>;
  /** Milliseconds for which memory answers while neither cache nor Postgres does. */
  readonly staleLimitMs: number;
  readonly tokenStaleLimitMs: number;
}

/** Milliseconds of a read until memory answers without it. */
const RECALL_AFTER_MS = 250;
/** Attempts of a read that a newer version or another lineage overtakes. */
const READS_AT_MOST = 3;

/** Tokens of one comparison: 0.2 to 0.4 ms of the event loop. */
const TOKENS_AT_ONCE = 100;
const REGION = 'region:';

/** The dump of an earlier process, read as a whole. */
export interface LoadedDump extends DumpContent {
  readonly documents: readonly DumpedDocument[];
}

/** A read under way. */
interface Flight {
  /** The newest version that was announced to the caller, or during the read; 0 for none. */
  announced: number;
  result: Promise<TieredResult> | undefined;
}

/**
 * Reads documents through the tiers by the rules of `Consistency`: memory, cache, Postgres, and what memory recalls last.
 * Single flight: one read a document at any time.
 */
export class Documents {
  readonly #options: DocumentsOptions;
  readonly #rules: Consistency;
  readonly #flights = new Map<string, Flight>();
  readonly #reads: Reads;
  readonly #freshness: Freshness;
  readonly tokens: TokenMemory;
  /** Documents in memory, all but tokens. */
  readonly #others: DocumentMemory;
  /** Bytes that the search takes from those of documents. */
  #reserved = 0;
  readonly #tiers: Tiers;
  readonly #machineRegions: MachineRegions;
  readonly #lineage: CurrentLineage;
  readonly #invalidationListeners: InvalidationListener[] = [];
  readonly #publicationListeners: PublicationListener[] = [];
  /** Until the lineage is known. */
  #dump: LoadedDump | undefined;

  constructor(options: DocumentsOptions) {
    const { link, logger, memory, staleLimitMs, tokenStaleLimitMs, now = steadyNow } = options;
    this.#options = options;
    const { reads } = options.postgres;
    this.#reads = reads;
    this.#rules = new Consistency({ link, now, staleLimitMs, tokenStaleLimitMs });
    this.#freshness = new Freshness({
      link,
      postgres: reads,
      now,
      onChange: () => {
        for (const listener of this.#invalidationListeners) listener.onFreshness();
      },
    });
    const shared = {
      rules: this.#rules,
      freshness: this.#freshness,
      memoryLimit: memory.documents,
      onInvalidate: (id: string) => {
        for (const listener of this.#invalidationListeners) listener.onInvalidate(id);
      },
    };
    this.tokens = new TokenMemory({ ...shared, unknownTokensLimit: memory.unknownTokens });
    this.#others = new DocumentMemory({ ...shared, bytesPerEntry: BYTES_PER_DOCUMENT });
    this.#tiers = new Tiers(options);
    const memoryLimit = memory.machineRegions;
    this.#machineRegions = new MachineRegions({ link, postgres: reads, now, memoryLimit });
    this.#lineage = new CurrentLineage({
      postgres: reads.primaryFirst,
      link,
      logger,
      onChange: (keys, isLost) => this.#follow(keys, isLost),
    });
  }

  /** True while every change reaches memory. */
  get linked(): boolean {
    return this.#options.link.linked;
  }

  /** Returns the document if memory may answer with it. No I/O. @param id of the name */
  getFresh(name: DocumentName, id: string = documentId(name)): Document | undefined {
    return this.#memoryOf(id).getFresh(id, name.kind)?.document;
  }

  /**
   * Returns the document from the nearest tier that has it, without a promise if that is memory.
   * Rejects with `Unavailable` if no tier has a document that is young enough.
   * @param lookUp runs the read from Postgres under a further limit
   */
  get(name: DocumentName, lookUp?: LookUp): MaybePromise<TieredResult> {
    const id = documentId(name);
    const memory = this.#memoryOf(id);
    const fresh = memory.getFresh(id, name.kind);
    if (fresh) {
      const { document } = fresh;
      const invalidatedBy = this.linked ? id : undefined;
      return { document, tier: 'memory', asOf: memory.asOf(id), invalidatedBy };
    }
    return this.#fly(id, 0, (flight) => this.#recallIfLate(this.#read(name, id, flight, lookUp), name, id));
  }

  /** Reads a document that memory does not store. @param announced the newest version announced to the caller; 0 for none */
  readApart(name: DocumentName & { kind: 'columns' }, announced: number): Promise<TieredResult> {
    const id = documentId(name);
    return this.#fly(id, announced, (flight) => this.#read(name, id, flight));
  }

  #fly(id: string, announced: number, read: (flight: Flight) => Promise<TieredResult>) {
    const running = this.#flights.get(id);
    if (running?.result !== undefined) {
      running.announced = Math.max(running.announced, announced);
      return running.result;
    }
    const flight: Flight = { announced, result: undefined };
    this.#flights.set(id, flight);
    flight.result = read(flight);
    return flight.result;
  }

  /** @param organizationId has a read of PostgreSQL in its share */
  regionOfMachine(machineId: number, organizationId?: number): MaybePromise<number | undefined> {
    const { keys } = this.#lineage;
    if (keys) return this.#machineRegions.get(machineId, keys, organizationId);
    return this.#lineage.find().then((found) => this.#machineRegions.get(machineId, found, organizationId));
  }

  /**
   * Compares with Postgres what no entry announces: the lineage, and the tokens in use. `watchLineage` calls it each second.
   * @returns as `CurrentLineage.check`
   * @throws Unavailable if Postgres does not answer
   */
  async checkPostgres(): Promise<boolean> {
    const isInLineage = await this.#lineage.check();
    await this.#compareTokens();
    return isInLineage;
  }

  /** So a revoked token is refused after the pause between two comparisons, also if no publisher reaches the cache. */
  async #compareTokens(): Promise<void> {
    const used = [...this.tokens.takeUsed()];
    for (let from = 0; from < used.length; from += TOKENS_AT_ONCE)
      await this.#compareSome(new Map(used.slice(from, from + TOKENS_AT_ONCE)));
  }

  /** @param used version by id */
  async #compareSome(used: ReadonlyMap<string, number>): Promise<void> {
    const { at } = this.#rules.now();
    const hashes = [...used.keys()].map((id) => id.slice(TOKEN.length));
    const stored = await this.#reads.primaryFirst.check((sql) => loadTokenVersions(sql, hashes));
    for (const [hash, version] of stored) {
      const id = TOKEN + hash;
      if (version > (used.get(id) ?? version)) {
        this.tokens.onNewer(id, version);
        this.#onPublished(id, version);
      } else this.tokens.confirm(id, version, at);
    }
  }

  /** The listener is notified when results with `invalidatedBy` end. */
  addInvalidationListener(listener: InvalidationListener): void {
    this.#invalidationListeners.push(listener);
  }

  addPublicationListener(listener: PublicationListener): void {
    this.#publicationListeners.push(listener);
  }

  reserve(bytes: number): void {
    this.#reserved = bytes;
    this.#divide();
  }

  /** Divides the bytes between tokens, which get what they need up to a half, and all other documents. */
  #divide(): void {
    const bytes = this.#options.memory.documents - this.#reserved;
    this.tokens.resize(bytes / 2);
    // Tokens beyond their half leave in slices, and must not evict all other documents until then.
    this.#others.resize(bytes - Math.min(this.tokens.size, bytes / 2));
  }

  #memoryOf(id: string): DocumentMemory {
    return id.startsWith(TOKEN) ? this.tokens : this.#others;
  }

  #invalidateAll(): void {
    for (const listener of this.#invalidationListeners) listener.onInvalidateAll();
  }

  /** Returns the time that a document in memory states now. */
  asOf(id: string): string | undefined {
    return this.#memoryOf(id).asOf(id);
  }

  get freshness(): Pick<Freshness, 'begin' | 'confirmed' | 'sourceAt'> {
    return this.#freshness;
  }

  /** Runs another read, such as that of a price history, under the same limits, see `Reads.run`. */
  postgres<T>(read: (sql: Sql) => Promise<T>, options?: ReadOptions<T>): Promise<T> {
    return this.#reads.run(read, options);
  }

  get memorySize(): number {
    return this.tokens.size + this.#others.size;
  }

  /**
   * Answers with what this process has read before if the read takes long, e.g. until a hang of PostgreSQL is detected. The read goes on. A
   * token waits for it: a slow PostgreSQL may know that it is revoked.
   */
  #recallIfLate(reading: Promise<TieredResult>, name: DocumentName, id: string): Promise<TieredResult> {
    if (name.kind === 'token' || !this.#others.getAny(id)) return reading;
    const { promise, resolve } = Promise.withResolvers<TieredResult>();
    const timer = setTimeout(() => {
      const recalled = this.#others.recallOwn({ id, name });
      if (recalled) resolve(recalled);
    }, RECALL_AFTER_MS);
    return Promise.race([reading, promise]).finally(() => clearTimeout(timer));
  }

  /** Reads through the tiers, and again if a newer version or another lineage came during the read. */
  async #read(name: DocumentName, id: string, flight: Flight, lookUp?: LookUp): Promise<TieredResult> {
    const memory = this.#memoryOf(id);
    try {
      for (let reads = 1; ; reads++) {
        const isLast = reads === READS_AT_MOST;
        const checked = this.#lineage.findChecked();
        const keys = checked instanceof Promise ? await checked : checked;
        const begun = name.kind === 'token' ? this.#freshness.known : this.#freshness.begin();
        const stamps = begun instanceof Promise ? await begun : begun;
        const began = this.#rules.now();
        const { document: cached, version } = memory.known(id);
        const atLeast = Math.max(version, flight.announced);
        // After a change of lineage all known tokens are looked up at the same time.
        const limits = this.tokens.wasKnown(id) ? undefined : lookUp;
        const wanted = { keys, name, id, cached, atLeast, stamps, lookUp: limits };
        let found: TieredResult;
        try {
          found = inFormForMemory(id, await this.#tiers.read(wanted));
          if (found.isOfPostgres) await this.#lineage.checkDumped(true);
          this.#rules.checkAge(name.kind, found, began);
        } catch (error) {
          if (!(error instanceof Unavailable) || keys !== this.#lineage.keys) throw error;
          const recalled = memory.recall(wanted);
          if (!recalled) throw error;
          return recalled;
        }
        const isReplaced = keys !== this.#lineage.keys;
        if (isReplaced && isLast) throw new Unavailable('the database was replaced while it was read');
        const isOvertaken = (found.document?.version ?? 0) < flight.announced;
        if (isReplaced || (isOvertaken && !isLast)) continue;
        // The same document as before keeps its time.
        if (cached && found.document === cached)
          found = { ...found, asOf: later(found.asOf, memory.asOf(id)) };
        const served = this.#rules.served(found, began, isOvertaken);
        memory.onServed(wanted, served);
        this.#tiers.onServed(wanted, served);
        if (memory === this.tokens) this.#divide();
        return found;
      }
    } finally {
      this.#flights.delete(id);
      // The map keeps a deleted flight in memory until the next major collection.
      flight.result = undefined;
    }
  }

  /** Returns the documents of memory, for one pass; undefined before the lineage is known. */
  dump(): DumpContent | undefined {
    const { keys } = this.#lineage;
    return keys && { lineage: keys.lineage, documents: this.#dumpOf(keys) };
  }

  /** Yields documents of this lineage. After a change, memory has those of another one. */
  *#dumpOf(keys: CacheKeys): Generator<DumpedDocument> {
    // Without its token no client gets an answer, so tokens are the last that a full file omits.
    for (const memory of [this.tokens, this.#others])
      for (const each of memory.dump()) {
        if (keys !== this.#lineage.keys) return;
        yield each;
      }
  }

  /** Inserts documents of an earlier process. They answer while neither the cache nor Postgres does. */
  insertDump(dump: LoadedDump): void {
    this.#dump = dump;
    this.#lineage.onNamedByDump(dump.lineage);
    if (this.#lineage.keys) this.#insertDump(this.#lineage.keys);
  }

  #insertDump({ lineage }: CacheKeys): void {
    if (!this.#dump) return;
    const { logger } = this.#options;
    const dump = this.#dump;
    this.#dump = undefined;
    if (dump.lineage !== lineage) {
      logger.warn('the dump in SNAPSHOT_DIR is ignored: it is of another database');
      return;
    }
    const isToken = ({ id }: DumpedDocument) => this.#memoryOf(id) === this.tokens;
    const tokens = this.tokens.insertDumped(dump.documents.filter(isToken));
    this.#divide();
    const others = this.#others.insertDumped(dump.documents.filter((each) => !isToken(each)));
    const documents = tokens + others;
    if (documents === 0 && dump.documents.length > 0)
      logger.warn('the dump in SNAPSHOT_DIR is ignored: its documents are too old');
    for (const { id, document } of dump.documents)
      if (id.startsWith(REGION))
        this.#machineRegions.insertDumped(Number(id.slice(REGION.length)), document.keys());
  }

  #follow(keys: CacheKeys, isLost: boolean): void {
    const { link } = this.#options;
    this.tokens.onLineage();
    this.#others.onLineage();
    this.#divide();
    this.#tiers.onLineage(keys.lineage);
    // Another lineage has other versions.
    for (const flight of this.#flights.values()) flight.announced = 0;
    this.#freshness.clear();
    this.#machineRegions.clear();
    this.#invalidateAll();
    for (const listener of this.#publicationListeners) listener.onLineage();
    this.#insertDump(keys);
    if (isLost) {
      link.leave();
      return;
    }
    link.follow(keys, {
      onPublished: (id, version) => this.#onPublished(id, version),
      onGap: () => {
        this.#machineRegions.clearUnknown();
        this.#invalidateAll();
      },
      onUnlinked: () => this.#invalidateAll(),
      onLineage: (lineage) => this.#lineage.onNamedByCache(lineage),
      onStamps: (stamps) => {
        this.#freshness.update(stamps);
        if (!this.#lineage.isSure) void this.#lineage.tryCheck();
      },
    });
  }

  #onPublished(id: string, version: number): void {
    if (id !== FEED_ID) {
      const flight = this.#flights.get(id);
      if (flight) flight.announced = Math.max(flight.announced, version);
      this.#memoryOf(id).onPublished(id, version);
      this.#tiers.onPublished(id, version);
    }
    for (const listener of this.#publicationListeners) listener.onPublished(id, version);
    if (id.startsWith(REGION)) this.#machineRegions.clearUnknown();
  }
}

/** Postgres gives a token with its encoded value. */
function inFormForMemory(id: string, found: TieredResult): TieredResult {
  const document = found.document && formForMemory(id, found.document);
  return document === found.document ? found : { ...found, document };
}
