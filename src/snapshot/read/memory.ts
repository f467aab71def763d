import { LRUCache } from 'lru-cache';
import { inSlices } from '../../domain/event-loop.ts';
import { Unavailable } from '../document/answer.ts';
import type { Document } from '../document/document.ts';
import type { DocumentName } from '../document/keys.ts';
import type { Freshness, ReadAt } from './freshness.ts';
import type { CacheLink } from './link.ts';
import type { DocumentListener, Served, TieredResult, Wanted } from './tiers.ts';

export type Kind = DocumentName['kind'];

/** The epoch of a document with a newer announced version. The link never has this epoch. */
const OUTDATED = 0;
/** The epoch of a document of an earlier process that nothing has confirmed since. */
const RECALLED = -1;
/** The epoch of a document that a replica, or a cache without workers, had some time ago. Entries before the read may be about it. */
const UNCONFIRMED = -2;

/** While the reader is not linked, an older document (ms) is compared with Postgres before it is served. */
export const UNLINKED_MAX_AGE_MS = 1000;
/** The same for a token. The comparison of all tokens in use confirms most of them each second. */
const UNLINKED_TOKEN_MAX_AGE_MS = 2000;
/** How long a token counts as unknown (ms). Its publication ends this at once. */
const UNKNOWN_TOKEN_MAX_AGE_MS = 10_000;

/** A recalled document may be from the future by this much (ms): clocks are set back. */
const CLOCK_TOLERANCE_MS = 60_000;

/** The state before a read. */
interface Began extends ReadAt {
  /** The last time (ms) for which the cache is known to be current. */
  readonly heartbeatAt: number;
}

export interface ConsistencyOptions {
  readonly link: Pick<CacheLink, 'linked' | 'epoch' | 'confirmedAt' | 'lastHeartbeatAt'>;
  readonly now: () => number;
  readonly staleLimitMs: number;
  readonly tokenStaleLimitMs: number;
}

/**
 * Decides which documents a reader may serve, by versions, epochs and ages.
 *
 * - No version follows a newer one that was served, or announced during the read.
 * - While the reader is linked, a document of the current epoch is current. Otherwise it is current for a second or two.
 * - An unconfirmed document is served until its limit. Tokens have another limit.
 */
export class Consistency {
  readonly #options: ConsistencyOptions;

  constructor(options: ConsistencyOptions) {
    this.#options = options;
  }

  /** Returns the state before a read. A change during the read makes the result outdated at once. */
  now(): Began {
    const { epoch, lastHeartbeatAt } = this.#options.link;
    return { epoch, at: this.#options.now(), heartbeatAt: lastHeartbeatAt };
  }

  /** Only Postgres knows what is current at the read. Workers may have lost the cache since their last heartbeat. */
  served(found: TieredResult, began: Began, isOvertaken: boolean): Served {
    const { document, knownAt, asOf, isOfPostgres } = found;
    const { linked } = this.#options.link;
    const isOutdated = isOvertaken || (knownAt !== undefined && linked);
    const epoch = isOutdated ? OUTDATED : knownAt !== undefined ? UNCONFIRMED : began.epoch;
    const readAt = isOfPostgres ? began.at : Math.min(began.at, began.heartbeatAt);
    const isOfCache = !isOfPostgres && knownAt === undefined;
    return { document, epoch, at: Math.min(readAt, knownAt ?? readAt), asOf, isOfCache };
  }

  /** @throws Unavailable for a result that was current too long ago */
  checkAge(kind: Kind, { knownAt }: TieredResult, began: ReadAt): void {
    if (knownAt !== undefined && began.at - knownAt > this.#limitOf(kind))
      throw new Unavailable('the document of the replica or the cache was confirmed too long ago');
  }

  /** Returns true if a document may be served at once. @param isThere false if there is no such document */
  isCurrent(read: ReadAt, kind: Kind, isThere: boolean): boolean {
    const { link, now } = this.#options;
    if (kind === 'token' && !isThere && now() - read.at > UNKNOWN_TOKEN_MAX_AGE_MS) return false;
    // A document of an earlier epoch may lack changes from before the link, also after the link has ended.
    if (read.epoch !== link.epoch) return false;
    if (link.linked) return true;
    const maxAge = kind === 'token' ? UNLINKED_TOKEN_MAX_AGE_MS : UNLINKED_MAX_AGE_MS;
    return now() - this.confirmedAt(read) <= maxAge;
  }

  /** Returns true if an unconfirmed document may be served. */
  isYoung(read: ReadAt, kind: Kind): boolean {
    // The newer version of a token is its revocation.
    if (kind === 'token' && read.epoch === OUTDATED) return false;
    const age = this.#options.now() - this.confirmedAt(read);
    return age <= this.#limitOf(kind) && age >= -CLOCK_TOLERANCE_MS;
  }

  confirmedAt({ epoch, at }: ReadAt): number {
    return Math.max(at, this.#options.link.confirmedAt(epoch));
  }

  #limitOf(kind: Kind): number {
    const { staleLimitMs, tokenStaleLimitMs } = this.#options;
    return kind === 'token' ? tokenStaleLimitMs : staleLimitMs;
  }
}

const kindOf = (id: string): Kind => id.split(':', 1)[0] as Kind;

interface Entry {
  readonly document: Document | undefined;
  epoch: number;
  at: number;
  asOf: string | undefined;
  /** The newest announced version; undefined while the document is the newest. */
  announced?: number;
}

const newestOf = ({ document, announced = 0 }: Entry): number => Math.max(document?.version ?? 0, announced);

/** A document of memory, when it was last current (ms), and the time that it stated then. */
export interface DumpedDocument {
  readonly id: string;
  readonly document: Document;
  readonly at: number;
  readonly asOf: string | undefined;
}

export interface DumpContent {
  readonly lineage: string;
  /** The first read one first. */
  readonly documents: Iterable<DumpedDocument>;
}

export interface DocumentMemoryOptions {
  readonly rules: Consistency;
  readonly freshness: Pick<Freshness, 'timeOf'>;
  readonly memoryLimit: number;
  /** Bytes of an entry in addition to those of its document. Also the whole cost of a known absence. */
  readonly bytesPerEntry: number;
  /** Called when a document ends to be current: replaced, outdated or evicted. */
  readonly onInvalidate: (id: string) => void;
}

/** Bytes of memory for each note. A note takes 13. */
const BYTES_PER_NOTE = 4096;
const NOTES_AT_LEAST = 64;
/**
 * The share of notes that are kept when a newer one comes. If only the newest were, documents that are requested in turn would replace
 * each other's notes before their second reads, and memory would keep documents that no client requests.
 */
const KEPT = 1 / 4;

/**
 * The newest versions of documents that memory lacks: read once while it was full, or evicted. A hash of the id determines a pair of
 * places: the first has the newest note of such documents, the second an older one. Notes make no garbage.
 */
class Notes {
  readonly #mask: number;
  readonly #marks: Int32Array;
  #mark = 0;
  /** 0 where nothing is noted. */
  readonly #versions: Float64Array;
  /** 1 for a document that was read once since memory lacks it. */
  readonly #isRead: Uint8Array;

  /** @param memoryLimit bytes of the documents */
  constructor(memoryLimit: number) {
    const count = Math.max(NOTES_AT_LEAST, 2 ** Math.ceil(Math.log2(memoryLimit / BYTES_PER_NOTE)));
    this.#mask = count - 2;
    this.#marks = new Int32Array(count);
    this.#versions = new Float64Array(count);
    this.#isRead = new Uint8Array(count);
  }

  /** Returns 0 for a document without a note. */
  version(id: string): number {
    return this.#versions[this.#find(this.#placesOf(id))] ?? 0;
  }

  /** Notes a version that was served or announced, unless a newer one is noted. Returns the place. */
  note(id: string, version: number): number {
    const places = this.#placesOf(id);
    const found = this.#find(places);
    const place = found === -1 ? this.#replace(places) : found;
    this.#versions[place] = Math.max(version, this.#versions[place] ?? 0);
    return place;
  }

  noteEvicted(id: string, version: number): void {
    this.#isRead[this.note(id, version)] = 0;
  }

  /** Notes a read. Returns true if it is the second one. */
  noteRead(id: string, version: number): boolean {
    const place = this.note(id, version);
    const isSecond = this.#isRead[place] === 1;
    this.#isRead[place] = isSecond ? 0 : 1;
    return isSecond;
  }

  /** Returns -1 for a document without a note. */
  #find(newest: number): number {
    if (this.#marks[newest] === this.#mark) return newest;
    return this.#marks[newest + 1] === this.#mark ? newest + 1 : -1;
  }

  #replace(newest: number): number {
    const older = newest + 1;
    if (Math.random() < KEPT) {
      this.#marks[older] = this.#marks[newest] ?? 0;
      this.#versions[older] = this.#versions[newest] ?? 0;
      this.#isRead[older] = this.#isRead[newest] ?? 0;
    }
    this.#marks[newest] = this.#mark;
    this.#versions[newest] = 0;
    this.#isRead[newest] = 0;
    return newest;
  }

  /** Returns the first place of a pair. Sets the mark too: another hash, so that documents of one pair differ. */
  #placesOf(id: string): number {
    let place = 0;
    let mark = 0;
    for (let i = 0; i < id.length; i++) {
      const code = id.charCodeAt(i);
      place = Math.imul(place ^ code, 0x01000193);
      mark = Math.imul(mark ^ code, 0x5bd1e995);
    }
    this.#mark = mark;
    return (place ^ (place >>> 15)) & this.#mask;
  }

  clear(): void {
    this.#marks.fill(0);
    this.#versions.fill(0);
    this.#isRead.fill(0);
  }
}

export class DocumentMemory implements DocumentListener {
  readonly #options: DocumentMemoryOptions;
  readonly #documents: LRUCache<string, Entry>;
  /** Bytes of the documents. */
  #limit: number;
  #evicting: Promise<void> | undefined;
  /** Of the documents. A walk through the LRU has no place to go on from after a pause. */
  readonly #ids = new Set<string>();
  readonly #notes: Notes;
  #isResizing = false;

  constructor(options: DocumentMemoryOptions) {
    this.#options = options;
    this.#limit = Math.max(1, Math.floor(options.memoryLimit));
    this.#documents = new LRUCache({
      maxSize: this.#limit,
      sizeCalculation: (entry) => this.#sizeOf(entry),
      dispose: (entry, id, reason) => {
        if (reason !== 'set') this.#ids.delete(id);
        if (entry.document) this.onRemoved(entry.document);
        if (reason === 'evict') this.#notes.noteEvicted(id, newestOf(entry));
        if (!this.#isResizing) options.onInvalidate(id);
      },
    });
    this.#notes = new Notes(this.#limit);
  }

  #sizeOf({ document }: Pick<Entry, 'document'>): number {
    return (document?.size ?? 0) + this.#options.bytesPerEntry;
  }

  /** Called with each document that leaves memory, or is replaced. */
  protected onRemoved(_document: Document): void {}

  /** Sets the limit in bytes, at most that of the options. The documents that were used last stay. */
  resize(bytes: number): void {
    this.#limit = Math.max(1, Math.floor(bytes));
    this.#evict();
  }

  /** Evicts documents until the limit holds, in slices: there may be many thousands. */
  #evict(): void {
    if (this.#evicting || this.#documents.calculatedSize <= this.#limit) return;
    this.#evicting = inSlices(this.#evictions()).finally(() => {
      this.#evicting = undefined;
    });
  }

  *#evictions(): Generator<void, void> {
    while (this.#documents.calculatedSize > this.#limit) {
      this.#documents.pop();
      yield;
    }
  }

  #insert(id: string, entry: Entry): void {
    // The LRU does the same at its own limit: such a document would evict all others.
    if (this.#sizeOf(entry) > this.#limit) {
      this.#documents.delete(id);
      this.#notes.note(id, newestOf(entry));
    } else {
      entry.document?.detach();
      this.#documents.set(id, entry);
      this.#ids.add(id);
    }
    this.#evict();
  }

  get size(): number {
    return this.#documents.calculatedSize;
  }

  /** Returns the entry if it is current; undefined if the document has to be read or compared. */
  getFresh(id: string, kind: Kind): { readonly document: Document | undefined } | undefined {
    const entry = this.#documents.get(id);
    return entry && this.#options.rules.isCurrent(entry, kind, entry.document !== undefined)
      ? entry
      : undefined;
  }

  /** Notes that Postgres had this version at this time (ms). */
  confirm(id: string, version: number, at: number): void {
    const entry = this.#documents.peek(id);
    if (entry?.document?.version === version && entry.epoch !== OUTDATED && entry.epoch !== RECALLED)
      entry.at = Math.max(at, entry.at);
  }

  getAny(id: string): Document | undefined {
    return this.#documents.peek(id)?.document;
  }

  /** Returns the time that the document states now; undefined for a recalled one. */
  asOf(id: string): string | undefined {
    const entry = this.#documents.peek(id);
    return entry && entry.epoch !== RECALLED ? this.#timeOf(id, entry) : undefined;
  }

  #timeOf(id: string, entry: Entry): string | undefined {
    return this.#options.freshness.timeOf(id, entry, entry.document?.sources ?? []);
  }

  /** Returns the document in memory, current or not, and the newest version that was announced or served. */
  known(id: string): { readonly document: Document | undefined; readonly version: number } {
    const entry = this.#documents.peek(id);
    return entry
      ? { document: entry.document, version: newestOf(entry) }
      : { document: undefined, version: this.#notes.version(id) };
  }

  /** Returns a document that was served before, if it is young enough. */
  recall({ id, name }: Pick<Wanted, 'id' | 'name'>): TieredResult | undefined {
    const { rules } = this.#options;
    const entry = this.#documents.peek(id);
    if (!entry?.document || !rules.isYoung(entry, name.kind)) return undefined;
    const asOf = this.#timeOf(id, entry);
    const knownAt = rules.confirmedAt(entry);
    return { document: entry.document, tier: entry.epoch === RECALLED ? 'disk' : 'memory', knownAt, asOf };
  }

  /** The same, for a document that this process has read, without a newer announced version. */
  recallOwn(wanted: Pick<Wanted, 'id' | 'name'>): TieredResult | undefined {
    const { epoch = OUTDATED } = this.#documents.peek(wanted.id) ?? {};
    return epoch === OUTDATED || epoch === RECALLED ? undefined : this.recall(wanted);
  }

  /**
   * Yields the documents without a newer announced version, the first read one first. Memory may change between two of
   * them: each has the state of the turn that yields it.
   */
  *dump(): Generator<DumpedDocument> {
    const { rules } = this.#options;
    for (const id of this.#ids) {
      const entry = this.#documents.peek(id);
      if (!entry?.document || entry.epoch === OUTDATED || !rules.isYoung(entry, kindOf(id))) continue;
      yield { id, document: entry.document, at: rules.confirmedAt(entry), asOf: this.#timeOf(id, entry) };
    }
  }

  /** Stores documents of an earlier process that are young enough. Returns how many. */
  insertRecalled(dumped: readonly DumpedDocument[]): number {
    let stored = 0;
    for (const { id, document, at, asOf } of dumped) {
      const entry: Entry = { document, epoch: RECALLED, at, asOf };
      if (this.#documents.has(id) || !this.#options.rules.isYoung(entry, kindOf(id))) continue;
      this.#store(id, entry);
      stored += 1;
    }
    return stored;
  }

  /** Stores a document, or notes its version. The search stores columns itself, in another form. */
  onServed({ id, name }: Pick<Wanted, 'id' | 'name'>, served: Served): void {
    if (name.kind === 'columns') return;
    const { document, epoch, at, asOf } = served;
    if (document && this.#wouldEvict(id, served) && !this.#notes.noteRead(id, document.version)) return;
    this.#store(id, { document, epoch, at, asOf });
  }

  /** Returns true for a document that would evict others, and that the cache gives again. */
  #wouldEvict(id: string, served: Served): boolean {
    if (!served.isOfCache || this.#documents.has(id)) return false;
    return this.#documents.calculatedSize + this.#sizeOf(served) > this.#limit;
  }

  #store(id: string, entry: Entry): void {
    const { document } = entry;
    this.#insert(id, entry);
    document?.onGrowth(() => this.#resize(id, document));
  }

  protected delete(id: string): void {
    this.#documents.delete(id);
  }

  protected ids(): Iterable<string> {
    return this.#ids;
  }

  /** Notes an announced version. An older document then answers only if no other tier does. */
  onPublished(id: string, version: number): void {
    const entry = this.#documents.peek(id);
    if (!entry) {
      if (this.#notes.version(id) > 0) this.#notes.note(id, version);
      return;
    }
    if ((entry.document?.version ?? 0) >= version) return;
    entry.asOf = this.#timeOf(id, entry);
    entry.at = this.#options.rules.confirmedAt(entry);
    entry.epoch = OUTDATED;
    entry.announced = Math.max(version, entry.announced ?? 0);
    this.#options.onInvalidate(id);
  }

  /** Forgets the documents of a former lineage. */
  onLineage(): void {
    this.#documents.clear();
    this.#notes.clear();
  }

  /** Inserts the entry again: the LRU reads a size only then. */
  #resize(id: string, document: Document): void {
    const entry = this.#documents.peek(id);
    if (entry?.document !== document) return;
    this.#isResizing = true;
    this.#documents.delete(id);
    this.#isResizing = false;
    this.#insert(id, entry);
    // A document larger than the limit is evicted.
    if (!this.#documents.has(id)) this.#options.onInvalidate(id);
  }
}
