import type { Logger } from 'pino';
import type { Sql } from '../../db/connect.ts';
import { readLineage } from '../../db/queries/versions.ts';
import { Unavailable } from '../document/answer.ts';
import type { Document } from '../document/document.ts';
import { CacheKeys, type DocumentName, documentId, LINEAGE_KEY } from '../document/keys.ts';
import { type MemoryBudget, memoryBudget } from './budget.ts';
import type { CacheLink } from './cache-subscription.ts';
import { Verification } from './freshness.ts';
import { MachineRegions } from './machine-regions.ts';
import { DocumentMemory } from './memory.ts';
import { PostgresReads, type PostgresReadsOptions } from './postgres-reads.ts';
import { type Found, Tiers } from './tiered-read.ts';

interface Flight {
  readonly promise: Promise<Found>;
  /** The version that a message announced while the read was under way: anything older is read again. */
  floor: number;
}

export interface DocumentsOptions {
  readonly sql: Sql;
  readonly link: CacheLink;
  readonly logger: Logger;
  readonly now?: () => number;
  /** Bytes of documents kept in memory, and of all that is kept beside them. */
  readonly memoryLimit: number;
  /** Unknown tokens that are looked up in PostgreSQL each second, see `UnknownTokens`; 100 unless given. */
  readonly unknownTokens?: number;
  /** The same for one address; 10 unless given. */
  readonly unknownTokensPerAddress?: number;
  /** Reads that may fall back to Postgres at once. */
  readonly postgresReads: number;
  /** Milliseconds that such a read may take, waiting for its turn included; 3,000 unless given. */
  readonly postgresDeadlineMs?: number;
  /** What an operator is told of a failure to reach or enter Postgres. */
  readonly postgresProblem?: PostgresReadsOptions['problemOf'];
  /** Called when Postgres takes statements and answers none, for a while: its connections are to be made anew. */
  readonly onHang?: (() => void) | undefined;
  /** Milliseconds for which memory answers when neither cache nor Postgres does. */
  readonly staleLimitMs: number;
  readonly tokenStaleLimitMs: number;
}

/** Of the reads from PostgreSQL at once, so many may be lookups of tokens: guessing leaves room for the rest. */
const TOKEN_READS_SHARE = 1 / 4;
/** How often a read is made again because what it brought was overtaken on the way. */
const READS_AT_MOST = 3;

/**
 * Reads documents through the tiers: memory, cache, Postgres. One read a key is under way at any time; what Postgres
 * answered is offered back to the cache; a version that memory holds is never followed by an older one.
 */
export class Documents {
  /** What whoever reads documents may keep beside them is part of it. */
  readonly budget: MemoryBudget;
  readonly #options: DocumentsOptions;
  readonly #now: () => number;
  readonly #memory: DocumentMemory;
  readonly #tiers: Tiers;
  readonly #flights = new Map<string, Flight>();
  readonly #postgres: PostgresReads;
  readonly #machineRegions: MachineRegions;
  readonly #verification: Verification;
  readonly #remembered: { forget(): void }[] = [];
  #keys: CacheKeys | undefined;
  /** False while only the cache has named the lineage. */
  #lineageIsSure = false;
  #openingLineage: Promise<CacheKeys> | undefined;

  constructor(options: DocumentsOptions) {
    const { link, sql, logger } = options;
    this.budget = memoryBudget(options.memoryLimit);
    const postgresDeadlineMs = options.postgresDeadlineMs ?? 3000;
    const now = options.now ?? Date.now;
    this.#options = options;
    this.#now = now;
    this.#memory = new DocumentMemory({
      link,
      now,
      memoryLimit: this.budget.documents,
      unknownTokensLimit: this.budget.unknownTokens,
      staleLimitMs: options.staleLimitMs,
      tokenStaleLimitMs: options.tokenStaleLimitMs,
      onLoss: () => this.#forget(),
    });
    this.#postgres = new PostgresReads({
      sql,
      logger,
      now,
      atOnce: options.postgresReads,
      deadlineMs: postgresDeadlineMs,
      onHang: options.onHang,
      problemOf: options.postgresProblem,
    });
    this.#tiers = new Tiers({
      link,
      postgres: this.#postgres,
      now,
      tokenReads: Math.ceil(options.postgresReads * TOKEN_READS_SHARE),
      tokenDeadlineMs: postgresDeadlineMs,
      unknownTokens: {
        perSecond: options.unknownTokens ?? 100,
        perSecondAndAddress: options.unknownTokensPerAddress ?? 10,
      },
    });
    this.#machineRegions = new MachineRegions({
      link,
      postgres: this.#postgres,
      now,
      memoryLimit: this.budget.machineRegions,
    });
    this.#verification = new Verification({
      link,
      postgres: this.#postgres,
      now,
      onChange: () => this.#forget(),
    });
  }

  /**
   * The document from memory, when it may be used as it is. No I/O, no promise.
   * @param id of the name, where the caller has it at hand
   */
  peek(name: DocumentName, id: string = documentId(name)): Document | undefined {
    return this.#memory.current(id, name.kind)?.document;
  }

  /**
   * The document from the nearest tier that has it, at once when that is memory.
   * @param address of whoever presents a token, see `UnknownTokens`
   * @throws Unavailable when no tier answers and memory holds nothing young enough, or too many guess tokens
   */
  get(name: DocumentName, address?: string): Found | Promise<Found> {
    const id = documentId(name);
    const current = this.#memory.current(id, name.kind);
    if (current) return { document: current.document, tier: 'memory' };
    const under = this.#flights.get(id);
    if (under) return under.promise;
    const flight: Flight = { promise: this.#read(name, id, address), floor: 0 };
    this.#flights.set(id, flight);
    return flight.promise;
  }

  /** The region of a machine, undefined when no catalogue has given this id. @throws Unavailable */
  async regionOfMachine(machineId: number): Promise<number | undefined> {
    return this.#machineRegions.of(machineId, this.#keys ?? (await this.#currentKeys()));
  }

  /** As `regionOfMachine`, by what memory knows; undefined says nothing. */
  peekRegionOfMachine(machineId: number): number | undefined {
    return this.#machineRegions.peek(machineId);
  }

  /**
   * Has whoever remembers what `peek` and the like said forget it, whenever any of that may be no longer right.
   * @returns the same
   */
  whileRight<T extends { forget(): void }>(remembered: T): T {
    this.#remembered.push(remembered);
    return remembered;
  }

  #forget(): void {
    for (const each of this.#remembered) each.forget();
  }

  /** True while the cache tells of every change: then memory needs no look at the clock. */
  get isLinked(): boolean {
    return this.#options.link.linked;
  }

  /** What is said at once about the age of documents, see `Verification`. */
  get verification(): Pick<Verification, 'state' | 'known'> {
    return this.#verification;
  }

  /** When the oldest of these sources was verified, see `Verification`. */
  verifiedAt(
    sources: readonly string[],
    kind: 'catalogue' | 'clusters',
  ): string | undefined | Promise<string | undefined> {
    return this.#verification.oldest(sources, kind);
  }

  /** Gives other reads, such as the price history, the same protection. @throws Unavailable */
  postgres<T>(read: (sql: Sql) => Promise<T>): Promise<T> {
    return this.#postgres.run(read);
  }

  /** Bytes that the documents in memory take, by this reader's own count. */
  get memorySize(): number {
    return this.#memory.size;
  }

  /** Milliseconds for which memory may answer alone. */
  get staleLimitMs(): number {
    return this.#options.staleLimitMs;
  }

  /** What has been overtaken on the way, by a newer version or by another lineage, is read again. */
  async #read(name: DocumentName, id: string, address: string | undefined): Promise<Found> {
    try {
      for (let reads = 1; ; reads++) {
        const isLast = reads === READS_AT_MOST;
        const keys = this.#keys ?? (await this.#currentKeys());
        const held = this.#memory.held(id);
        // Taken before anything is read: what changes meanwhile makes the entry old at once.
        const { epoch } = this.#options.link;
        const at = this.#now();
        let found: Found;
        try {
          found = await this.#tiers.read(keys, name, held, address);
        } catch (error) {
          if (!(error instanceof Unavailable) || keys !== this.#keys) throw error;
          const document = this.#memory.whenAlone(id, name.kind);
          if (!document) throw error;
          return { document, tier: 'memory' };
        }
        if (keys !== this.#keys) {
          if (isLast) throw new Unavailable('the database was replaced while it was read');
          continue;
        }
        const overtaken = (found.document?.version ?? 0) < (this.#flights.get(id)?.floor ?? 0);
        if (overtaken && !isLast) continue;
        this.#memory.keep(id, name.kind, found.document, { epoch: overtaken ? undefined : epoch, at });
        return found;
      }
    } finally {
      this.#flights.delete(id);
    }
  }

  /** Which lineage is current: Postgres says, or the cache while Postgres is away. */
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
      const lineage = await this.#options.link.ask((redis) => redis.get(LINEAGE_KEY));
      if (lineage == null) throw error;
      return this.#follow(lineage, false);
    }
  }

  #follow(lineage: string, isSure: boolean): CacheKeys {
    const keys = new CacheKeys(lineage);
    this.#keys = keys;
    this.#lineageIsSure = isSure;
    this.#memory.clear();
    for (const flight of this.#flights.values()) flight.floor = 0;
    this.#verification.forget();
    this.#machineRegions.forget();
    this.#forget();
    this.#options.link.follow(keys, {
      onPublished: (id, version) => this.#onPublished(id, version),
      onGap: () => {
        this.#machineRegions.forgetUnknown();
        this.#forget();
      },
      onUnlinked: () => this.#forget(),
      onLineage: () => void this.#askForLineage(),
      onVerified: (stamps) => {
        this.#verification.learn(Object.entries(stamps));
        if (!this.#lineageIsSure) void this.#askForLineage();
      },
    });
    return keys;
  }

  #onPublished(id: string, version: number): void {
    const flight = this.#flights.get(id);
    if (flight) flight.floor = Math.max(flight.floor, version);
    this.#memory.outdate(id, version);
    if (id.startsWith('region:')) this.#machineRegions.forgetUnknown();
  }

  /** The cache follows another database, or has alone named this one: Postgres decides which is to be followed. */
  async #askForLineage(): Promise<void> {
    const lineage = await this.#postgres.run(readLineage).catch(() => undefined);
    if (lineage === undefined) return;
    if (lineage === this.#keys?.lineage) this.#lineageIsSure = true;
    else {
      this.#options.logger.info({ lineage }, 'the database has a new lineage: what memory holds is dropped');
      this.#follow(lineage, true);
    }
  }
}
