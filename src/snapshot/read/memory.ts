import { LRUCache } from 'lru-cache';
import { inSlices } from '../../domain/event-loop.ts';
import type { Document } from '../document/document.ts';
import { type Consistency, type Kind, OF_DUMP, OUTDATED } from './consistency.ts';
import type { Freshness } from './freshness.ts';
import { Notes } from './notes.ts';
import type { DocumentListener, Served, TieredResult, Wanted } from './tiers.ts';

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

export class DocumentMemory implements DocumentListener {
  readonly #options: DocumentMemoryOptions;
  readonly #documents: LRUCache<string, Entry>;
  /** Bytes of the documents. */
  #limit: number;
  #isEvicting = false;
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
    if (this.#isEvicting || this.#documents.calculatedSize <= this.#limit) return;
    this.#isEvicting = true;
    void inSlices(this.#evictions());
  }

  *#evictions(): Generator<void, void> {
    while (this.#documents.calculatedSize > this.#limit) {
      this.#documents.pop();
      yield;
    }
    // Here and not later, when the promise settles: a document that is stored in between would stay beyond the limit.
    this.#isEvicting = false;
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
    if (entry?.document?.version === version && entry.epoch !== OUTDATED && entry.epoch !== OF_DUMP)
      entry.at = Math.max(at, entry.at);
  }

  getAny(id: string): Document | undefined {
    return this.#documents.peek(id)?.document;
  }

  /** Returns the time that the document states now; undefined for one of a dump. */
  asOf(id: string): string | undefined {
    const entry = this.#documents.peek(id);
    return entry && entry.epoch !== OF_DUMP ? this.#timeOf(id, entry) : undefined;
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
    return { document: entry.document, tier: entry.epoch === OF_DUMP ? 'disk' : 'memory', knownAt, asOf };
  }

  /** The same, for a document that this process has read, without a newer announced version. */
  recallOwn(wanted: Pick<Wanted, 'id' | 'name'>): TieredResult | undefined {
    const { epoch = OUTDATED } = this.#documents.peek(wanted.id) ?? {};
    return epoch === OUTDATED || epoch === OF_DUMP ? undefined : this.recall(wanted);
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

  /** Stores documents of a dump that are young enough. Returns how many. */
  insertDumped(dumped: readonly DumpedDocument[]): number {
    let stored = 0;
    for (const { id, document, at, asOf } of dumped) {
      const entry: Entry = { document, epoch: OF_DUMP, at, asOf };
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
