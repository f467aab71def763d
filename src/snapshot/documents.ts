import { LRUCache } from 'lru-cache';
import type { Logger } from 'pino';
import type { Sql } from '../store/connect.ts';
import { readLineage } from '../store/versions.ts';
import { type Tier, Unavailable } from './answer.ts';
import type { CacheLink } from './cache-link.ts';
import { type Document, decodeDocument, encodeDocument, HEADER_LENGTH, parseHeader } from './format.ts';
import { CacheKeys, type DocumentName, documentId, LINEAGE_KEY } from './keys.ts';
import { loadContent, loadVersion } from './load.ts';
import { MachineRegions } from './machine-regions.ts';
import { PostgresReads } from './postgres-reads.ts';
import { Verification } from './verification.ts';

/** A document, or the knowledge that there is none, and the tier that answered. */
export interface Found {
  readonly document: Document | undefined;
  readonly tier: Tier;
}

interface Entry {
  readonly document: Document | undefined;
  /** The link's epoch in which it was read; in a later one it has to be compared first. */
  epoch: number;
  /** When it was last known to be what the cache or Postgres holds, in milliseconds. */
  confirmedAt: number;
}

/** The epoch of an entry of which a newer version was announced: it never is the link's. */
const OUTDATED = 0;

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
  /** Bytes of documents kept in memory. */
  readonly memoryLimit: number;
  /** Reads that may fall back to Postgres at once. */
  readonly postgresReads: number;
  /** Milliseconds that such a read may take, waiting for its turn included; 3,000 unless given. */
  readonly postgresDeadlineMs?: number;
  /** Called when Postgres takes statements and answers none, for a while: its connections are to be made anew. */
  readonly onHang?: (() => void) | undefined;
  /** Milliseconds for which memory answers when neither cache nor Postgres does. */
  readonly staleLimitMs: number;
  readonly tokenStaleLimitMs: number;
}

/** While the link is down, memory of this age (ms) is compared with Postgres before it is used. */
const UNLINKED_MAX_AGE_MS = 1000;
const UNLINKED_TOKEN_MAX_AGE_MS = 10_000;
/** What an entry costs beside its bytes; also the whole cost of knowing that something does not exist. */
const ENTRY_OVERHEAD = 512;
/** How often a read is made again because what it brought was overtaken on the way. */
const READS_AT_MOST = 3;

/**
 * Reads documents through the tiers: memory, cache, Postgres. One read a key is under way at any time; what Postgres
 * answered is offered back to the cache; a version that memory holds is never followed by an older one.
 */
export class Documents {
  readonly #options: DocumentsOptions;
  readonly #now: () => number;
  readonly #memory: LRUCache<string, Entry>;
  readonly #flights = new Map<string, Flight>();
  readonly #postgres: PostgresReads;
  readonly #machineRegions: MachineRegions;
  readonly #verification: Verification;
  #keys: CacheKeys | undefined;
  /** False while only the cache has named the lineage. */
  #lineageIsSure = false;
  #openingLineage: Promise<CacheKeys> | undefined;

  constructor(options: DocumentsOptions) {
    const { link, sql, logger } = options;
    const now = options.now ?? Date.now;
    this.#options = options;
    this.#now = now;
    this.#memory = new LRUCache({
      maxSize: options.memoryLimit,
      sizeCalculation: (entry) => (entry.document?.size ?? 0) + ENTRY_OVERHEAD,
    });
    this.#postgres = new PostgresReads({
      sql,
      logger,
      now,
      atOnce: options.postgresReads,
      deadlineMs: options.postgresDeadlineMs ?? 3000,
      onHang: options.onHang,
    });
    this.#machineRegions = new MachineRegions({ link, postgres: this.#postgres, now });
    this.#verification = new Verification({ link, postgres: this.#postgres, now });
  }

  /** The document from memory, when it may be used as it is. No I/O, no promise. */
  peek(name: DocumentName): Document | undefined {
    const entry = this.#memory.get(documentId(name));
    return entry && this.#isCurrent(entry, name.kind) ? entry.document : undefined;
  }

  /**
   * The document from the nearest tier that has it.
   * @throws Unavailable when no tier answers and memory holds nothing young enough.
   */
  async get(name: DocumentName): Promise<Found> {
    const id = documentId(name);
    const entry = this.#memory.get(id);
    if (entry && this.#isCurrent(entry, name.kind)) return { document: entry.document, tier: 'memory' };
    const under = this.#flights.get(id);
    if (under) return under.promise;
    const flight: Flight = { promise: this.#read(name, id), floor: 0 };
    this.#flights.set(id, flight);
    return flight.promise;
  }

  /** The region of a machine, undefined when no catalogue has given this id. @throws Unavailable */
  async regionOfMachine(machineId: number): Promise<number | undefined> {
    return this.#machineRegions.of(machineId, await this.#currentKeys());
  }

  /** When the oldest of these sources was verified, see `Verification`. */
  verifiedAt(sources: readonly string[], kind: 'catalogue' | 'clusters'): Promise<string | undefined> {
    return this.#verification.oldest(sources, kind);
  }

  /** Gives other reads, such as the price history, the same protection. @throws Unavailable */
  postgres<T>(read: (sql: Sql) => Promise<T>): Promise<T> {
    return this.#postgres.run(read);
  }

  /** Milliseconds for which memory may answer alone. */
  get staleLimitMs(): number {
    return this.#options.staleLimitMs;
  }

  #isCurrent(entry: Entry, kind: DocumentName['kind']): boolean {
    const { link } = this.#options;
    if (link.linked) return entry.epoch === link.epoch;
    if (entry.epoch === OUTDATED) return false;
    const maxAge = kind === 'token' ? UNLINKED_TOKEN_MAX_AGE_MS : UNLINKED_MAX_AGE_MS;
    return this.#now() - this.#confirmedAt(entry) <= maxAge;
  }

  /** Whether memory may answer because nothing else does. */
  #isYoungEnough(entry: Entry, kind: DocumentName['kind']): boolean {
    if (kind !== 'token') return this.#now() - this.#confirmedAt(entry) <= this.#options.staleLimitMs;
    // The newer version of a token is its revocation.
    if (entry.epoch === OUTDATED) return false;
    return this.#now() - this.#confirmedAt(entry) <= this.#options.tokenStaleLimitMs;
  }

  #confirmedAt(entry: Entry): number {
    return Math.max(entry.confirmedAt, this.#options.link.confirmedAt(entry.epoch));
  }

  async #read(name: DocumentName, id: string): Promise<Found> {
    try {
      for (let reads = 1; ; reads++) {
        const found = await this.#readOnce(name, id, reads === READS_AT_MOST);
        if (found) return found;
      }
    } finally {
      this.#flights.delete(id);
    }
  }

  /** Undefined when what was read has been overtaken meanwhile, by a newer version or by another lineage. */
  async #readOnce(name: DocumentName, id: string, last: boolean): Promise<Found | undefined> {
    const keys = await this.#currentKeys();
    const entry = this.#memory.peek(id);
    // Taken before anything is read: what changes meanwhile makes the entry old at once.
    const { epoch } = this.#options.link;
    const confirmedAt = this.#now();
    let found: Found;
    try {
      found =
        (await this.#fromCache(keys, name, entry?.document)) ?? (await this.#fromTruth(keys, name, entry));
    } catch (error) {
      if (!(error instanceof Unavailable) || keys !== this.#keys) throw error;
      if (!entry?.document || !this.#isYoungEnough(entry, name.kind)) throw error;
      return { document: entry.document, tier: 'memory' };
    }
    if (keys !== this.#keys) {
      if (last) throw new Unavailable('the database was replaced while it was read');
      return undefined;
    }
    const overtaken = (found.document?.version ?? 0) < (this.#flights.get(id)?.floor ?? 0);
    if (overtaken && !last) return undefined;
    this.#memory.set(id, { document: found.document, epoch: overtaken ? OUTDATED : epoch, confirmedAt });
    return found;
  }

  /** From the cache: what memory has, if the cache has nothing newer, else the cached document. */
  async #fromCache(
    keys: CacheKeys,
    name: DocumentName,
    held: Document | undefined,
  ): Promise<Found | undefined> {
    const { link } = this.#options;
    const key = keys.document(name);
    if (held) {
      const header = await link.ask((redis) => redis.getrangeBuffer(key, 0, HEADER_LENGTH - 1));
      const version = header && parseHeader(header)?.version;
      if (version === held.version) return { document: held, tier: 'memory' };
      // An older one than was given already: the cache has lost something, and only Postgres knows what is true.
      if (version === undefined || version < held.version) return undefined;
    }
    const value = await link.ask((redis) => redis.getBuffer(key));
    const document = value ? decodeDocument(name, value) : undefined;
    if (!document || document.version < (held?.version ?? 0)) return undefined;
    return { document, tier: 'redis' };
  }

  async #fromTruth(keys: CacheKeys, name: DocumentName, entry: Entry | undefined): Promise<Found> {
    const held = entry?.document;
    if (held) {
      const version = await this.#postgres.run((sql) => loadVersion(sql, name));
      if (version === held.version) return { document: held, tier: 'memory' };
    }
    const encoded = await this.#postgres.run(async (sql) => {
      const content = await loadContent(sql, name);
      return content && encodeDocument(content);
    });
    if (!encoded) return { document: undefined, tier: 'postgres' };
    const { value, document } = encoded;
    this.#options.link.writeBack(keys, name, document.version, value);
    return { document, tier: 'postgres' };
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
    this.#options.link.follow(keys, {
      onPublished: (id, version) => this.#onPublished(id, version),
      onGap: () => this.#machineRegions.forgetUnknown(),
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
    const entry = this.#memory.peek(id);
    // Kept for the case that nothing else answers.
    if (entry && (entry.document?.version ?? 0) < version) {
      entry.confirmedAt = this.#confirmedAt(entry);
      entry.epoch = OUTDATED;
    }
    if (id.startsWith('region:')) this.#machineRegions.forgetUnknown();
  }

  /** The cache follows another database, or has alone named this one: Postgres decides which is to be followed. */
  async #askForLineage(): Promise<void> {
    const lineage = await this.#postgres.run(readLineage).catch(() => undefined);
    if (lineage === undefined) return;
    if (lineage === this.#keys?.lineage) this.#lineageIsSure = true;
    else this.#follow(lineage, true);
  }
}
