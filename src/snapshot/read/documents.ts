import type { Sql } from '../../db/connection/connect.ts';
import { type InvalidationListener, type MaybePromise, Unavailable } from '../document/answer.ts';
import type { Document } from '../document/document.ts';
import { type CacheKeys, type DocumentName, documentId, FEED_ID } from '../document/keys.ts';
import { type Belief, Consistency } from './consistency.ts';
import { CurrentLineage } from './current-lineage.ts';
import type { DocumentsOptions, PublicationListener } from './documents-options.ts';
import type { DurableCopy } from './durable-copy.ts';
import { Freshness, later } from './freshness.ts';
import { MachineRegions } from './machine-regions.ts';
import type { Check, Reads } from './postgres/reads.ts';
import { DocumentMemory } from './tiers/memory.ts';
import { openPostgresReads, openTiers } from './tiers/open-tiers.ts';
import type { LookUp, TieredResult, Wanted } from './tiers/tier.ts';
import type { Tiers } from './tiers/tiers.ts';
import { TokenComparison } from './token-comparison.ts';

/** Milliseconds until memory answers in the place of a slower tier. */
const WITHOUT_MEMORY_MS = 250;

/** Attempts of a read that a newer version or another lineage overtakes. */
const READS_AT_MOST = 3;

/**
 * Reads documents through the tiers (`Tiers`) by the rules of `Consistency`. Single flight: one read a document at any time.
 */
export class Documents {
  readonly #options: DocumentsOptions;
  readonly #memory: DocumentMemory;
  readonly #tiers: Tiers;
  readonly #rules: Consistency;
  /** Reads under way, by id. */
  readonly #flights = new Map<string, Promise<TieredResult>>();
  readonly #postgres: Reads;
  readonly #machineRegions: MachineRegions;
  readonly #freshness: Freshness;
  readonly #copy: DurableCopy | undefined;
  readonly #listeners: InvalidationListener[] = [];
  readonly #publicationListeners: PublicationListener[] = [];
  readonly #lineage: CurrentLineage;
  readonly #tokens: TokenComparison;

  constructor(options: DocumentsOptions) {
    const { subscription, logger, memory } = options;
    const now = options.now ?? Date.now;
    this.#options = options;
    this.#copy = options.copy;
    const { staleLimitMs, tokenStaleLimitMs } = options;
    this.#rules = new Consistency({ subscription, now, staleLimitMs, tokenStaleLimitMs });
    this.#postgres = openPostgresReads(options);
    this.#freshness = new Freshness({
      subscription,
      postgres: this.#postgres,
      now,
      onChange: () => {
        for (const listener of this.#listeners) listener.onFreshness();
      },
    });
    this.#memory = new DocumentMemory({
      rules: this.#rules,
      freshness: this.#freshness,
      memoryLimit: memory.documents,
      unknownTokensLimit: memory.unknownTokens,
      onInvalidate: (id) => {
        for (const listener of this.#listeners) listener.onInvalidate(id);
      },
    });
    this.#tiers = openTiers(options, this.#memory, this.#postgres);
    this.#machineRegions = new MachineRegions({
      subscription,
      postgres: this.#postgres,
      now,
      copy: this.#copy,
      memoryLimit: memory.machineRegions,
    });
    this.#lineage = new CurrentLineage({
      postgres: this.#postgres.primaryFirst,
      subscription,
      copy: this.#copy,
      logger,
      onChange: (keys, isLost) => this.#follow(keys, isLost),
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
        const stamps = this.#freshness.confirmed(epoch);
        return linked ? { epoch, at: subscription.confirmedAt(epoch), stamps } : undefined;
      },
      documents: () => this.#memory.known(),
    });
  }

  /**
   * Returns the document if memory may answer with it. No I/O.
   * @param id of the name
   */
  getFresh(name: DocumentName, id: string = documentId(name)): Document | undefined {
    return this.#memory.getFresh(id, name.kind)?.document;
  }

  /**
   * Returns the document from the nearest tier that has it, without a promise if that is memory.
   * Rejects with `Unavailable` if no tier answers and memory has nothing young enough.
   * @param lookUp runs the read from Postgres under a further limit
   */
  get(name: DocumentName, lookUp?: LookUp): MaybePromise<TieredResult> {
    const id = documentId(name);
    const fresh = this.#memory.getFresh(id, name.kind);
    if (fresh) {
      const { document } = fresh;
      const invalidatedBy = this.#options.subscription.linked ? id : undefined;
      return { document, tier: 'memory', asOf: this.#memory.asOf(id), invalidatedBy };
    }
    const flight = this.#flights.get(id);
    return flight ?? this.#begin(id, 0, () => this.#withoutDelay(this.#read(name, id, lookUp), name, id));
  }

  /**
   * Reads a document for a caller that stores it in another form. Memory does not store it.
   * @param heard the newest version that was announced to the caller; 0 for none
   */
  readApart(name: DocumentName & { kind: 'columns' }, heard: number): Promise<TieredResult> {
    const id = documentId(name);
    this.#rules.heard(id, heard);
    return this.#flights.get(id) ?? this.#begin(id, heard, () => this.#read(name, id, undefined));
  }

  #begin(id: string, heard: number, read: () => Promise<TieredResult>): Promise<TieredResult> {
    this.#rules.begin(id, heard);
    const flight = read();
    this.#flights.set(id, flight);
    return flight;
  }

  /** Returns the region of a machine; undefined for an unknown id. Rejects with `Unavailable`. */
  regionOfMachine(machineId: number): MaybePromise<number | undefined> {
    const { keys } = this.#lineage;
    if (keys) return this.#machineRegions.get(machineId, keys);
    return this.#lineage.find().then((found) => this.#machineRegions.get(machineId, found));
  }

  /**
   * Compares with Postgres what no message announces: the lineage, and the tokens in use. `watchLineage` calls it each second.
   * @returns as `CurrentLineage.check`
   * @throws Unavailable if Postgres does not answer
   */
  async checkPostgres(): Promise<boolean> {
    const isInLineage = await this.#lineage.check();
    await this.#tokens.compare();
    return isInLineage;
  }

  /** Adds a listener that is notified when results with `invalidatedBy` end. */
  onInvalidate(listener: InvalidationListener): void {
    this.#listeners.push(listener);
  }

  /** Adds a listener for publications. */
  onPublished(listener: PublicationListener): void {
    this.#publicationListeners.push(listener);
  }

  /** Takes bytes from the limit of documents, for another use. */
  reserve(bytes: number): void {
    this.#memory.resize(this.#options.memory.documents - bytes);
  }

  #invalidateAll(): void {
    for (const listener of this.#listeners) listener.onInvalidateAll();
  }

  /** Returns the time that a document in memory states now. */
  asOf(id: string): string | undefined {
    return this.#memory.asOf(id);
  }

  get freshness(): Pick<Freshness, 'begin' | 'confirmed'> {
    return this.#freshness;
  }

  /**
   * Runs another read, such as that of a price history, under the same limits. Rejects with `Unavailable`.
   * @param check as `Reads.run`
   */
  postgres<T>(read: (sql: Sql) => Promise<T>, check?: Check<T>): Promise<T> {
    return this.#postgres.run(read, check);
  }

  /** Counted bytes of the documents in memory. */
  get memorySize(): number {
    return this.#memory.size;
  }

  /**
   * Answers from memory if the read takes long. A document that is not outdated does not wait until a hang of PostgreSQL is
   * detected. The read goes on.
   */
  #withoutDelay(reading: Promise<TieredResult>, name: DocumentName, id: string): Promise<TieredResult> {
    if (!this.#memory.getAny(id)) return reading;
    const { promise, resolve } = Promise.withResolvers<TieredResult>();
    const timer = setTimeout(() => {
      const recalled = this.#memory.recallUnlessOutdated({ id, name });
      if (recalled) resolve(recalled);
    }, WITHOUT_MEMORY_MS);
    return Promise.race([reading, promise]).finally(() => clearTimeout(timer));
  }

  /** Reads through the tiers, and again if a newer version or another lineage came during the read. */
  async #read(name: DocumentName, id: string, lookUp: LookUp | undefined): Promise<TieredResult> {
    const rules = this.#rules;
    try {
      for (let reads = 1; ; reads++) {
        const isLast = reads === READS_AT_MOST;
        const confirmed = this.#lineage.confirmed();
        const keys = confirmed instanceof Promise ? await confirmed : confirmed;
        const begun = name.kind === 'token' ? this.#freshness.known : this.#freshness.begin();
        const stamps = begun instanceof Promise ? await begun : begun;
        const began = rules.now();
        const cached = this.#memory.getAny(id);
        const atLeast = Math.max(this.#memory.heardOf(id), rules.heardOf(id), cached?.version ?? 0);
        // After a change of lineage all known tokens are looked up at the same time.
        const limits = this.#memory.wasKnown(id) ? undefined : lookUp;
        const wanted = { keys, name, id, cached, atLeast, stamps, lookUp: limits };
        const found = await this.#find(wanted, began);
        if (found.isRecalled) return found;
        const isReplaced = keys !== this.#lineage.keys;
        if (isReplaced && isLast) throw new Unavailable('the database was replaced while it was read');
        if (isReplaced || (rules.isOvertaken(id, found.document) && !isLast)) continue;
        this.#tiers.given(wanted, rules.given(id, found, began));
        return found;
      }
    } finally {
      this.#flights.delete(id);
      rules.end(id);
    }
  }

  /** Returns the current document, or the last known one. @throws Unavailable */
  async #find(wanted: Wanted, began: Belief): Promise<TieredResult> {
    const { keys, id, name } = wanted;
    try {
      let found = await this.#tiers.read(wanted);
      if (found.isOfPostgres) await this.#lineage.confirm(true);
      if (found.mayLack && this.#tiers.isLasting && keys === this.#lineage.keys) {
        const version = found.document?.version ?? 0;
        const newest = await this.#tiers.newest(id, version);
        if (newest > version) found = await this.#tiers.read({ ...wanted, atLeast: newest });
      }
      this.#rules.checkAge(name.kind, found, began);
      // The same document as before keeps its time.
      return found.document && found.document === wanted.cached
        ? { ...found, asOf: later(found.asOf, this.#memory.asOf(id)) }
        : found;
    } catch (error) {
      if (!(error instanceof Unavailable) || keys !== this.#lineage.keys) throw error;
      const atLeast = Math.max(wanted.atLeast, this.#rules.heardOf(id));
      const recalled = await this.#tiers.recall({ ...wanted, atLeast });
      if (!recalled) throw error;
      return recalled;
    }
  }

  #follow(keys: CacheKeys, isLost: boolean): void {
    const { subscription } = this.#options;
    this.#tiers.begin(keys.lineage);
    this.#rules.clear();
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
        this.#machineRegions.clearUnknown();
        this.#invalidateAll();
      },
      onUnlinked: () => this.#invalidateAll(),
      onLineage: () => void this.#lineage.ask(),
      onVerified: (stamps, isLinked) => {
        this.#freshness.update(Object.entries(stamps), isLinked);
        if (!this.#lineage.isSure) void this.#lineage.ask();
      },
    });
  }

  #onPublished(id: string, version: number): void {
    if (id !== FEED_ID) {
      this.#rules.heard(id, version);
      this.#tiers.heard(id, version);
    }
    for (const listener of this.#publicationListeners) listener.onPublished(id, version);
    if (id.startsWith('region:')) this.#machineRegions.clearUnknown();
  }
}
