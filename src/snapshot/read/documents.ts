import type { Logger } from 'pino';
import type { Sql } from '../../db/connect.ts';
import { readLineage } from '../../db/reads/lineage.ts';
import type { DiskCopy } from '../disk/disk-copy.ts';
import { type InvalidationListener, type MaybePromise, Unavailable } from '../document/answer.ts';
import type { Document } from '../document/document.ts';
import { CacheKeys, type DocumentName, documentId, LINEAGE_KEY } from '../document/keys.ts';
import type { MemoryBudget } from './budget.ts';
import type { CacheSubscription } from './cache-subscription.ts';
import { Freshness } from './freshness.ts';
import { MachineRegions } from './machine-regions.ts';
import { DocumentMemory } from './memory.ts';
import { POSTGRES_DEADLINE_MS, PostgresReads, type PostgresReadsOptions } from './postgres-reads.ts';
import { type LookUp, TieredRead, type TieredResult } from './tiered-read.ts';

interface Flight {
  readonly promise: Promise<TieredResult>;
  /** The newest version that was published while the read was under way. Anything older is read again. */
  newestVersion: number;
}

export interface DocumentsOptions {
  readonly sql: Sql;
  readonly subscription: CacheSubscription;
  readonly logger: Logger;
  readonly now?: () => number;
  readonly memory: Pick<MemoryBudget, 'documents' | 'machineRegions' | 'unknownTokens'>;
  /** Reads that may fall back to Postgres at once. */
  readonly postgresReads: number;
  /** Milliseconds that such a read may take, waiting for its turn included; `POSTGRES_DEADLINE_MS` unless given. */
  readonly postgresDeadlineMs?: number;
  /** What an operator is told of a failure to reach or enter Postgres. */
  readonly postgresProblem?: PostgresReadsOptions['problemOf'];
  /** Called when Postgres takes statements and answers none, for a while: its connections are to be made anew. */
  readonly onHang?: (() => void) | undefined;
  /** Hears of each value of the cache that cannot be used, by the kind of document that was asked for. */
  readonly onUnusable?: ((kind: DocumentName['kind']) => void) | undefined;
  /** Milliseconds for which memory answers when neither cache nor Postgres does. */
  readonly staleLimitMs: number;
  readonly tokenStaleLimitMs: number;
  /** What is served is kept there, and given when no other tier answers. */
  readonly copy?: DiskCopy | undefined;
}

/** Milliseconds for which a document that memory has is waited for from elsewhere. */
const WITHOUT_MEMORY_MS = 250;

/** How often a read is made again because a newer version was published, or the lineage changed, meanwhile. */
const READS_AT_MOST = 3;

/**
 * Reads documents through the tiers: memory, cache, Postgres. One read a key is under way at any time. What Postgres
 * answered is offered to the cache. An older version never follows a newer one.
 */
export class Documents {
  readonly #options: DocumentsOptions;
  readonly #now: () => number;
  readonly #memory: DocumentMemory;
  readonly #tiers: TieredRead;
  readonly #flights = new Map<string, Flight>();
  readonly #postgres: PostgresReads;
  readonly #machineRegions: MachineRegions;
  readonly #freshness: Freshness;
  readonly #copy: DiskCopy | undefined;
  readonly #listeners: InvalidationListener[] = [];
  #keys: CacheKeys | undefined;
  /** False while only the cache has named the lineage. */
  #lineageIsSure = false;
  /** True while nobody but the disk has named it. */
  #lineageIsOfDisk = false;
  #openingLineage: Promise<CacheKeys> | undefined;
  #askingForLineage: Promise<void> | undefined;

  constructor(options: DocumentsOptions) {
    const { subscription, sql, logger, memory } = options;
    const now = options.now ?? Date.now;
    this.#options = options;
    this.#now = now;
    this.#copy = options.copy;
    this.#memory = new DocumentMemory({
      subscription,
      now,
      memoryLimit: memory.documents,
      unknownTokensLimit: memory.unknownTokens,
      staleLimitMs: options.staleLimitMs,
      tokenStaleLimitMs: options.tokenStaleLimitMs,
      onInvalidate: (id) => {
        for (const listener of this.#listeners) listener.onInvalidate(id);
      },
    });
    this.#postgres = new PostgresReads({
      sql,
      logger,
      now,
      atOnce: options.postgresReads,
      deadlineMs: options.postgresDeadlineMs ?? POSTGRES_DEADLINE_MS,
      onHang: options.onHang,
      problemOf: options.postgresProblem,
    });
    this.#tiers = new TieredRead({
      subscription,
      postgres: this.#postgres,
      onUnusable: (name) => {
        options.onUnusable?.(name.kind);
        logger.warn(
          { document: documentId(name) },
          'the cache held a value that cannot be used; it is replaced',
        );
      },
    });
    this.#machineRegions = new MachineRegions({
      subscription,
      postgres: this.#postgres,
      now,
      copy: this.#copy,
      memoryLimit: memory.machineRegions,
    });
    this.#freshness = new Freshness({
      subscription,
      postgres: this.#postgres,
      now,
      copy: this.#copy,
      onChange: () => {
        for (const listener of this.#listeners) listener.onFreshness();
      },
    });
    this.#copy?.feedFrom({
      confirmed: () => {
        const { linked, epoch } = subscription;
        return linked ? { epoch, at: subscription.confirmedAt(epoch) } : undefined;
      },
      documents: () => this.#memory.known(),
      stamps: () => this.#freshness.known(),
    });
  }

  /**
   * The document, if memory may answer with it. No I/O.
   * @param id of the name, where the caller has it at hand
   */
  getFresh(name: DocumentName, id: string = documentId(name)): Document | undefined {
    return this.#memory.getFresh(id, name.kind)?.document;
  }

  /**
   * The document from the nearest tier that has it, at once when that is memory.
   * Rejects with `Unavailable` when no tier answers and memory has nothing young enough.
   * @param lookUp runs the read from Postgres, for callers with a limit of their own
   */
  get(name: DocumentName, lookUp?: LookUp): MaybePromise<TieredResult> {
    const id = documentId(name);
    const fresh = this.#memory.getFresh(id, name.kind);
    if (fresh) {
      const { document } = fresh;
      return { document, tier: 'memory', invalidatedBy: this.#freshness.isCurrent ? id : undefined };
    }
    const flight = this.#flights.get(id);
    if (flight) return flight.promise;
    const promise = this.#withoutDelay(this.#read(name, id, lookUp), name, id);
    const begun: Flight = { promise, newestVersion: 0 };
    this.#flights.set(id, begun);
    return begun.promise;
  }

  /** The region of a machine, undefined when no catalogue has given this id. Rejects with `Unavailable`. */
  regionOfMachine(machineId: number): MaybePromise<number | undefined> {
    if (this.#keys) return this.#machineRegions.get(machineId, this.#keys);
    return this.#currentKeys().then((keys) => this.#machineRegions.get(machineId, keys));
  }

  /** Adds a listener that hears when results with `invalidatedBy` may be used no longer. */
  onInvalidate(listener: InvalidationListener): void {
    this.#listeners.push(listener);
  }

  #invalidateAll(): void {
    for (const listener of this.#listeners) listener.onInvalidateAll();
  }

  /** When data is from, by its sources. */
  get freshness(): Pick<Freshness, 'get' | 'getKnown'> {
    return this.#freshness;
  }

  /** Runs another read, such as that of a price history, under the same limits. Rejects with `Unavailable`. */
  postgres<T>(read: (sql: Sql) => Promise<T>): Promise<T> {
    return this.#postgres.run(read);
  }

  /** Bytes that the documents in memory take, by their own count. */
  get memorySize(): number {
    return this.#memory.size;
  }

  /**
   * What is read, or what memory has where that takes long: a document that nobody has said to be old is given before
   * PostgreSQL, which may hang, has said that it is not. The reading goes on.
   */
  #withoutDelay(reading: Promise<TieredResult>, { kind }: DocumentName, id: string): Promise<TieredResult> {
    if (!this.#memory.getAny(id)) return reading;
    const { promise, resolve } = Promise.withResolvers<TieredResult>();
    const timer = setTimeout(() => {
      const document = this.#memory.getUnlessOutdated(id, kind);
      if (document) resolve({ document, tier: this.#memory.staleTier(id) });
    }, WITHOUT_MEMORY_MS);
    return Promise.race([reading, promise]).finally(() => clearTimeout(timer));
  }

  /** Reads through the tiers, and again if a newer version or another lineage came meanwhile. */
  async #read(name: DocumentName, id: string, lookUp: LookUp | undefined): Promise<TieredResult> {
    try {
      for (let reads = 1; ; reads++) {
        const isLast = reads === READS_AT_MOST;
        const known = this.#keys ?? (await this.#currentKeys());
        // The disk's lineage may be another than the database's by now: its versions say nothing then.
        if (this.#lineageIsOfDisk) await this.#askForLineage();
        const keys = this.#keys ?? known;
        const cached = this.#memory.getAny(id);
        // Taken before anything is read: what changes meanwhile makes the entry old at once.
        const { epoch } = this.#options.subscription;
        const at = this.#now();
        let found: TieredResult;
        try {
          found = await this.#tiers.read(keys, name, cached, lookUp);
          const newest = this.#copy && (await this.#copy.supersede(id, found.document));
          // The cache has lost what this reader, or the one before it, has given.
          if (found.tier === 'redis' && newest !== undefined && newest > (found.document?.version ?? 0))
            found = await this.#tiers.fromPostgres(keys, name, cached, lookUp);
        } catch (error) {
          if (!(error instanceof Unavailable) || keys !== this.#keys) throw error;
          const stale = await this.#stale(name, id);
          if (!stale) throw error;
          return stale;
        }
        if (keys !== this.#keys) {
          if (isLast) throw new Unavailable('the database was replaced while it was read');
          continue;
        }
        const overtaken = (found.document?.version ?? 0) < (this.#flights.get(id)?.newestVersion ?? 0);
        if (overtaken && !isLast) continue;
        this.#memory.set(id, name.kind, found.document, { epoch: overtaken ? undefined : epoch, at });
        if (found.document && !overtaken) this.#copy?.keep(id, found.document, { epoch, at });
        return found;
      }
    } finally {
      this.#flights.delete(id);
    }
  }

  /** What may be given although nobody confirms it: by memory, else by the copy on disk. */
  async #stale(name: DocumentName, id: string): Promise<TieredResult | undefined> {
    const known = this.#memory.getStale(id, name.kind);
    if (known) return { document: known, tier: this.#memory.staleTier(id) };
    const before = this.#memory.getAny(id)?.version ?? 0;
    const kept = await this.#copy?.read(name);
    if (!kept || kept.document.version < Math.max(before, this.#flights.get(id)?.newestVersion ?? 0))
      return undefined;
    this.#memory.setFromDisk(id, kept.document, kept.knownAt);
    return { document: kept.document, tier: 'disk' };
  }

  /** The keys of the current lineage. Postgres names it, or the cache while Postgres is away. */
  async #currentKeys(): Promise<CacheKeys> {
    if (this.#keys) return this.#keys;
    this.#openingLineage ??= this.#findLineage().finally(() => {
      this.#openingLineage = undefined;
    });
    return this.#openingLineage;
  }

  async #findLineage(): Promise<CacheKeys> {
    try {
      return this.#follow(await this.#postgres.run(readLineage), true);
    } catch (error) {
      const cached = await this.#options.subscription.ask((redis) => redis.get(LINEAGE_KEY));
      if (cached != null) return this.#follow(cached, false);
      const lineage = await this.#copy?.lineage();
      if (lineage === undefined) throw error;
      const keys = this.#follow(lineage, false);
      this.#lineageIsOfDisk = true;
      return keys;
    }
  }

  #follow(lineage: string, isSure: boolean): CacheKeys {
    const keys = new CacheKeys(lineage, this.#options.subscription.lanes);
    this.#keys = keys;
    this.#lineageIsSure = isSure;
    this.#lineageIsOfDisk = false;
    this.#copy?.follow(lineage, isSure);
    this.#memory.clear();
    for (const flight of this.#flights.values()) flight.newestVersion = 0;
    this.#freshness.clear();
    this.#machineRegions.clear();
    this.#invalidateAll();
    this.#options.subscription.follow(keys, {
      onPublished: (id, version) => this.#onPublished(id, version),
      onGap: () => {
        this.#machineRegions.clearUnknown();
        this.#invalidateAll();
      },
      onUnlinked: () => this.#invalidateAll(),
      onLineage: () => void this.#askForLineage(),
      onVerified: (stamps) => {
        this.#freshness.update(Object.entries(stamps));
        if (!this.#lineageIsSure) void this.#askForLineage();
      },
    });
    return keys;
  }

  #onPublished(id: string, version: number): void {
    const flight = this.#flights.get(id);
    if (flight) flight.newestVersion = Math.max(flight.newestVersion, version);
    this.#memory.outdate(id, version);
    this.#copy?.heard(id, version);
    if (id.startsWith('region:')) this.#machineRegions.clearUnknown();
  }

  /** Asks Postgres which lineage to follow: the cache names another one, or is the only one that has named ours. */
  #askForLineage(): Promise<void> {
    this.#askingForLineage ??= this.#askPostgresForLineage().finally(() => {
      this.#askingForLineage = undefined;
    });
    return this.#askingForLineage;
  }

  async #askPostgresForLineage(): Promise<void> {
    const lineage = await this.#postgres.run(readLineage).catch(() => undefined);
    if (lineage === undefined) return;
    if (lineage === this.#keys?.lineage) {
      this.#lineageIsSure = true;
      this.#lineageIsOfDisk = false;
      this.#copy?.follow(lineage, true);
    } else {
      this.#options.logger.info(
        { lineage },
        'the database has a new lineage: documents in memory are dropped',
      );
      this.#follow(lineage, true);
    }
  }
}
