import type { Sql } from '../../db/connect.ts';
import type { DiskCopy } from '../disk/disk-copy.ts';
import { type InvalidationListener, type MaybePromise, Unavailable } from '../document/answer.ts';
import type { Document } from '../document/document.ts';
import { type CacheKeys, type DocumentName, documentId, FEED_ID } from '../document/keys.ts';
import { CurrentLineage } from './current-lineage.ts';
import type { DocumentsOptions } from './documents-options.ts';
import { Freshness } from './freshness.ts';
import { MachineRegions } from './machine-regions.ts';
import { DocumentMemory } from './memory.ts';
import { POSTGRES_DEADLINE_MS, PostgresReads } from './postgres-reads.ts';
import type { Check, ReplicaReads } from './replica-reads.ts';
import { type LookUp, TieredRead, type TieredResult } from './tiered-read.ts';
import { TokenComparison } from './token-comparison.ts';

/** Hears of publications by the ids of their documents, and when all that was heard and read is of another history. */
export interface PublicationListener {
  onPublished(id: string, version: number): void;
  onLineage(): void;
}

interface Flight {
  readonly promise: Promise<TieredResult>;
  /** The newest version that was published while the read was under way. Anything older is read again. */
  newestVersion: number;
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
  readonly #postgres: PostgresReads | ReplicaReads;
  readonly #replica: ReplicaReads | undefined;
  readonly #machineRegions: MachineRegions;
  readonly #freshness: Freshness;
  readonly #copy: DiskCopy | undefined;
  readonly #listeners: InvalidationListener[] = [];
  readonly #publicationListeners: PublicationListener[] = [];
  readonly #lineage: CurrentLineage;
  readonly #tokens: TokenComparison;

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
    this.#replica = options.replica;
    this.#postgres =
      options.replica ??
      new PostgresReads({
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
      onStamp: (source, stamp) => this.#replica?.heardStamp(source, stamp),
      onChange: () => {
        for (const listener of this.#listeners) listener.onFreshness();
      },
    });
    this.#lineage = new CurrentLineage({
      postgres: this.#postgres.primaryFirst,
      subscription,
      copy: this.#copy,
      logger,
      onChange: (keys, isLost) => this.#begin(keys, isLost),
    });
    this.#tokens = new TokenComparison({
      postgres: this.#postgres.primaryFirst,
      memory: this.#memory,
      now,
      onNewer: (id, version) => this.#onPublished(id, version),
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

  /**
   * Reads a document that its caller keeps in a form of its own: memory does not.
   * @param heard the newest version that the caller has heard of; 0 for none
   */
  readApart(name: DocumentName & { kind: 'columns' }, heard: number): Promise<TieredResult> {
    const id = documentId(name);
    const flight = this.#flights.get(id);
    if (flight) {
      flight.newestVersion = Math.max(flight.newestVersion, heard);
      return flight.promise;
    }
    const begun: Flight = { promise: this.#read(name, id, undefined), newestVersion: heard };
    this.#flights.set(id, begun);
    return begun.promise;
  }

  /** The region of a machine, undefined when no catalogue has given this id. Rejects with `Unavailable`. */
  regionOfMachine(machineId: number): MaybePromise<number | undefined> {
    const { keys } = this.#lineage;
    if (keys) return this.#machineRegions.get(machineId, keys);
    return this.#lineage.find().then((found) => this.#machineRegions.get(machineId, found));
  }

  /**
   * Compares with Postgres what no message may tell: the lineage, and the tokens in use. `watchLineage` does so once a second.
   * @returns as `CurrentLineage.check`
   * @throws Unavailable when Postgres does not answer
   */
  async checkPostgres(): Promise<boolean> {
    const isInLineage = await this.#lineage.check();
    await this.#tokens.compare();
    return isInLineage;
  }

  /** Adds a listener that hears when results with `invalidatedBy` may be used no longer. */
  onInvalidate(listener: InvalidationListener): void {
    this.#listeners.push(listener);
  }

  /** Adds a listener that hears of each publication. */
  onPublished(listener: PublicationListener): void {
    this.#publicationListeners.push(listener);
  }

  /** Leaves bytes of what documents may take to something else. */
  reserve(bytes: number): void {
    this.#memory.resize(this.#options.memory.documents - bytes);
  }

  #invalidateAll(): void {
    for (const listener of this.#listeners) listener.onInvalidateAll();
  }

  /** When data is from, by its sources. */
  get freshness(): Pick<Freshness, 'get' | 'getKnown' | 'known'> {
    return this.#freshness;
  }

  /**
   * Runs another read, such as that of a price history, under the same limits. Rejects with `Unavailable`.
   * @param check whether the answer of a replica will do
   */
  postgres<T>(read: (sql: Sql) => Promise<T>, check?: Check<T>): Promise<T> {
    return this.#postgres.run(read, check);
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
      if (document) resolve(this.#unconfirmed(id, document));
    }, WITHOUT_MEMORY_MS);
    return Promise.race([reading, promise]).finally(() => clearTimeout(timer));
  }

  /** Reads through the tiers, and again if a newer version or another lineage came meanwhile. */
  async #read(name: DocumentName, id: string, lookUp: LookUp | undefined): Promise<TieredResult> {
    try {
      for (let reads = 1; ; reads++) {
        const isLast = reads === READS_AT_MOST;
        const known = await this.#lineage.find();
        await this.#lineage.confirm();
        const keys = this.#lineage.keys ?? known;
        const cached = this.#memory.getAny(id);
        // After a change of lineage all who are known are looked up at once.
        const limits = this.#memory.wasKnown(id) ? undefined : lookUp;
        // Taken before anything is read: what changes meanwhile makes the entry old at once.
        const { epoch } = this.#options.subscription;
        const at = this.#now();
        let found: TieredResult;
        try {
          const heard = Math.max(this.#memory.heardOf(id), this.#flights.get(id)?.newestVersion ?? 0);
          found = await this.#tiers.read(keys, name, { cached, heard }, limits);
          // PostgreSQL has said it, which names its lineage then.
          if (found.isOfReplica !== undefined) await this.#lineage.confirm(true);
          const isCurrent = keys === this.#lineage.keys;
          // The cache has lost, or the replica lacks, what this reader has given before its last start.
          if (isCurrent && (found.tier === 'redis' || found.isOfReplica)) {
            const version = found.document?.version ?? 0;
            const newest = (await this.#copy?.newest(id, version)) ?? 0;
            if (newest > version) {
              this.#replica?.heard(id, newest);
              found = await this.#tiers.fromPostgres(keys, name, cached, limits);
            }
          }
          if (keys === this.#lineage.keys) this.#copy?.given(id, found.document);
          const { tokenStaleLimitMs, staleLimitMs } = this.#options;
          if (at - (found.unsureSince ?? at) > (name.kind === 'token' ? tokenStaleLimitMs : staleLimitMs))
            throw new Unavailable('what the replica or the cache holds was confirmed too long ago');
        } catch (error) {
          if (!(error instanceof Unavailable) || keys !== this.#lineage.keys) throw error;
          const stale = await this.#stale(name, id);
          if (!stale) throw error;
          return stale;
        }
        if (keys !== this.#lineage.keys) {
          if (isLast) throw new Unavailable('the database was replaced while it was read');
          continue;
        }
        const overtaken = (found.document?.version ?? 0) < (this.#flights.get(id)?.newestVersion ?? 0);
        if (overtaken && !isLast) continue;
        if (found.document) this.#replica?.heard(id, found.document.version);
        const knownAt = Math.min(at, found.unsureSince ?? at);
        // No message tells of what was published before the link, and the replica may lack it.
        const isUnsure = found.unsureSince !== undefined && this.#options.subscription.linked;
        const isOld = overtaken || isUnsure;
        if (name.kind !== 'columns')
          this.#memory.set(id, name.kind, found.document, { epoch: isOld ? undefined : epoch, at: knownAt });
        if (found.document && !isOld) this.#copy?.keep(id, found.document, { epoch, at: knownAt });
        return found;
      }
    } finally {
      this.#flights.delete(id);
    }
  }

  /** What may be given although nobody confirms it: by memory, else by the copy on disk. */
  async #stale(name: DocumentName, id: string): Promise<TieredResult | undefined> {
    const known = this.#memory.getStale(id, name.kind);
    if (known) return this.#unconfirmed(id, known);
    const before = this.#memory.getAny(id)?.version ?? 0;
    const kept = await this.#copy?.read(name);
    if (!kept || kept.document.version < Math.max(before, this.#flights.get(id)?.newestVersion ?? 0))
      return undefined;
    if (name.kind !== 'columns') this.#memory.setFromDisk(id, kept.document, kept.knownAt);
    return { document: kept.document, tier: 'disk', knownAt: kept.knownAt };
  }

  #unconfirmed(id: string, document: Document): TieredResult {
    return { document, tier: this.#memory.staleTier(id), knownAt: this.#memory.knownAt(id) ?? 0 };
  }

  #begin(keys: CacheKeys, isLost: boolean): void {
    const { subscription } = this.#options;
    this.#replica?.follow(keys.lineage);
    this.#options.onLineage?.();
    this.#memory.clear();
    for (const flight of this.#flights.values()) flight.newestVersion = 0;
    this.#freshness.clear();
    this.#machineRegions.clear();
    this.#invalidateAll();
    for (const listener of this.#publicationListeners) listener.onLineage();
    if (isLost) {
      subscription.leave();
      return;
    }
    subscription.follow(keys, {
      onPublished: (id, version) => this.#onPublished(id, version),
      onGap: () => {
        this.#replica?.heardAll();
        this.#machineRegions.clearUnknown();
        this.#invalidateAll();
      },
      onUnlinked: () => this.#invalidateAll(),
      onLineage: () => void this.#lineage.ask(),
      onVerified: (stamps, isLinked) => {
        if (isLinked) this.#freshness.update(Object.entries(stamps));
        else this.#freshness.learn(Object.entries(stamps));
        if (!this.#lineage.isSure) void this.#lineage.ask();
      },
    });
  }

  #onPublished(id: string, version: number): void {
    if (id === FEED_ID) {
      this.#options.onFeed?.(version);
      return;
    }
    const flight = this.#flights.get(id);
    if (flight) flight.newestVersion = Math.max(flight.newestVersion, version);
    this.#memory.outdate(id, version);
    this.#replica?.heard(id, version);
    this.#copy?.heard(id, version);
    for (const listener of this.#publicationListeners) listener.onPublished(id, version);
    if (id.startsWith('region:')) this.#machineRegions.clearUnknown();
  }
}
