import { LRUCache } from 'lru-cache';
import type { Document } from '../document/document.ts';
import type { DocumentName } from '../document/keys.ts';
import { BYTES_PER_DOCUMENT, BYTES_PER_ENTRY } from '../document/memory-costs.ts';
import type { CacheSubscription } from './cache-subscription.ts';

type Kind = DocumentName['kind'];

interface Entry {
  /** Undefined: it is known that there is none. */
  readonly document: Document | undefined;
  /** The subscription's epoch in which it was read. In a later one it has to be compared first. */
  epoch: number;
  /** When it was last known to be what the cache or Postgres has, in milliseconds. */
  confirmedAt: number;
  readonly isFromDisk?: boolean;
  /** The newest version that was heard of; undefined while nothing newer than the document was. */
  heard?: number;
}

/** The epoch of an entry of which a newer version was published. The subscription's epoch never has this value. */
const OUTDATED = 0;
/** The epoch of an entry of the disk copy, which nobody has confirmed since this process began. */
const FROM_DISK = -1;

/** While no messages arrive, memory older than this (ms) is compared with Postgres before it is used. */
export const UNLINKED_MAX_AGE_MS = 1000;
/** The same of a token. The check of all tokens in use, once a second, confirms most of them earlier. */
const UNLINKED_TOKEN_MAX_AGE_MS = 2000;
/** How long a token is believed to be unknown (ms). A publication of the token ends it at once. */
const UNKNOWN_TOKEN_MAX_AGE_MS = 10_000;

export interface DocumentMemoryOptions {
  readonly subscription: CacheSubscription;
  readonly now: () => number;
  /** Bytes of documents. */
  readonly memoryLimit: number;
  /** Bytes for tokens that are known to be unknown. They have a room of their own: guessing evicts no document. */
  readonly unknownTokensLimit: number;
  /** Milliseconds for which memory answers when neither cache nor Postgres does. */
  readonly staleLimitMs: number;
  readonly tokenStaleLimitMs: number;
  /** Called when a document that was fresh may be so no longer: replaced, outdated or evicted. */
  readonly onInvalidate: (id: string) => void;
}

/** The documents in this process' memory, and how long each may be believed. */
export class DocumentMemory {
  readonly #options: DocumentMemoryOptions;
  #documents: LRUCache<string, Entry>;
  readonly #unknownTokens: LRUCache<string, Entry>;
  /** Tokens that were here under a former lineage, and have not been read since. */
  readonly #formerTokens = new Set<string>();
  /** Tokens that requests used since `takeUsedTokens`. */
  #usedTokens = new Set<string>();
  /** True while an entry is removed only to be inserted again with its new size. */
  #isResizing = false;

  constructor(options: DocumentMemoryOptions) {
    this.#options = options;
    this.#documents = this.#newDocuments(options.memoryLimit);
    this.#unknownTokens = new LRUCache({
      maxSize: Math.max(16 * BYTES_PER_ENTRY, Math.floor(options.unknownTokensLimit)),
      sizeCalculation: () => BYTES_PER_ENTRY,
    });
  }

  #newDocuments(bytes: number): LRUCache<string, Entry> {
    return new LRUCache({
      maxSize: Math.max(1, Math.floor(bytes)),
      sizeCalculation: ({ document }) => (document?.size ?? 0) + BYTES_PER_DOCUMENT,
      dispose: (_, id) => {
        if (!this.#isResizing) this.#options.onInvalidate(id);
      },
    });
  }

  /** From now on documents may take so many bytes. Those that were used last stay. */
  resize(bytes: number): void {
    if (this.#documents.maxSize === Math.max(1, Math.floor(bytes))) return;
    const before = this.#documents;
    this.#documents = this.#newDocuments(bytes);
    // From the one that was used longest ago: the last ones push it out again.
    for (const [id, entry] of [...before.entries()].reverse()) this.#documents.set(id, entry);
  }

  /** Bytes that the documents take, by its own count. */
  get size(): number {
    return this.#documents.calculatedSize;
  }

  /** A document, or the knowledge that there is none. Undefined when it has to be read, or compared. */
  getFresh(id: string, kind: Kind): { readonly document: Document | undefined } | undefined {
    const entry = this.#documents.get(id) ?? (kind === 'token' ? this.#unknownTokens.get(id) : undefined);
    if (!entry || !this.#isFresh(entry, kind)) return undefined;
    if (kind === 'token' && entry.document) this.#usedTokens.add(id);
    return entry;
  }

  /** The tokens that were used since the last call, with their versions. */
  takeUsedTokens(): Map<string, number> {
    const used = this.#usedTokens;
    this.#usedTokens = new Set();
    const versions = new Map<string, number>();
    for (const id of used) {
      const version = this.#documents.peek(id)?.document?.version;
      if (version !== undefined) versions.set(id, version);
    }
    return versions;
  }

  /** Notes that Postgres had this version at this time (ms). */
  confirm(id: string, version: number, at: number): void {
    const entry = this.#documents.peek(id);
    if (entry?.document?.version === version && entry.epoch !== OUTDATED && !entry.isFromDisk)
      entry.confirmedAt = Math.max(at, entry.confirmedAt);
  }

  /** The document, however old. */
  getAny(id: string): Document | undefined {
    return this.#documents.peek(id)?.document;
  }

  /** The newest version that was heard of while the document is here; 0 for none that is newer than it. */
  heardOf(id: string): number {
    return this.#documents.peek(id)?.heard ?? 0;
  }

  /** The document, if it is young enough to be used when neither cache nor Postgres answers. */
  getStale(id: string, kind: Kind): Document | undefined {
    const entry = this.#documents.peek(id);
    if (!entry?.document) return undefined;
    const { staleLimitMs, tokenStaleLimitMs, now } = this.#options;
    // The newer version of a token is its revocation. What the disk has outlives this process: nothing older is given.
    if ((kind === 'token' || entry.isFromDisk) && entry.epoch === OUTDATED) return undefined;
    const limit = kind === 'token' ? tokenStaleLimitMs : staleLimitMs;
    return now() - this.#confirmedAt(entry) <= limit ? entry.document : undefined;
  }

  /** The same of a document of which no newer version was published, as far as is known. */
  getUnlessOutdated(id: string, kind: Kind): Document | undefined {
    return this.#documents.peek(id)?.epoch === OUTDATED ? undefined : this.getStale(id, kind);
  }

  /** Which tier answers with `getStale`: `disk` where nobody has confirmed what came from there. */
  staleTier(id: string): 'memory' | 'disk' {
    return this.#documents.peek(id)?.isFromDisk ? 'disk' : 'memory';
  }

  /** When it was last known to be what the cache or Postgres has, in milliseconds; undefined where it is not here. */
  knownAt(id: string): number | undefined {
    const entry = this.#documents.peek(id);
    return entry && this.#confirmedAt(entry);
  }

  /** Everything that is here and of which no newer version is known; the epoch and time are those of its reading. */
  *known(): Generator<{ id: string; document: Document; epoch: number; at: number }> {
    for (const [id, { document, epoch, confirmedAt, isFromDisk }] of this.#documents.entries())
      if (document && epoch !== OUTDATED && !isFromDisk) yield { id, document, epoch, at: confirmedAt };
  }

  /** Takes what the disk copy gave. @param knownAt when it was last known to be true, in milliseconds */
  setFromDisk(id: string, document: Document, knownAt: number): void {
    this.#documents.set(id, { document, epoch: FROM_DISK, confirmedAt: knownAt, isFromDisk: true });
    document.onGrowth(() => this.#resize(id, document));
  }

  /**
   * @param read.epoch the subscription's, before anything was read; undefined if a newer version was published meanwhile
   * @param read.at when the reading began, in milliseconds
   */
  set(
    id: string,
    kind: Kind,
    document: Document | undefined,
    read: { readonly epoch: number | undefined; readonly at: number },
  ): void {
    this.#formerTokens.delete(id);
    const entry: Entry = { document, epoch: read.epoch ?? OUTDATED, confirmedAt: read.at };
    if (kind === 'token' && !document) {
      this.#documents.delete(id);
      this.#unknownTokens.set(id, entry);
      return;
    }
    if (kind === 'token') {
      this.#unknownTokens.delete(id);
      this.#usedTokens.add(id);
    }
    this.#documents.set(id, entry);
    document?.onGrowth(() => this.#resize(id, document));
  }

  /** Whether this is a token that was known before the lineage changed: to look it up is no guess. */
  wasKnown(id: string): boolean {
    return this.#formerTokens.has(id);
  }

  /** A newer version was published: what is here answers only when nothing else does. */
  outdate(id: string, version: number): void {
    this.#unknownTokens.delete(id);
    const entry = this.#documents.peek(id);
    if (!entry || (entry.document?.version ?? 0) >= version) return;
    entry.confirmedAt = this.#confirmedAt(entry);
    entry.epoch = OUTDATED;
    entry.heard = Math.max(version, entry.heard ?? 0);
    this.#options.onInvalidate(id);
  }

  /** Of another lineage nothing is known. That a token is no guess still is. */
  clear(): void {
    for (const id of this.#documents.keys()) if (id.startsWith('token:')) this.#formerTokens.add(id);
    this.#documents.clear();
    this.#unknownTokens.clear();
  }

  #isFresh(entry: Entry, kind: Kind): boolean {
    const { subscription, now } = this.#options;
    if (kind === 'token' && !entry.document && now() - entry.confirmedAt > UNKNOWN_TOKEN_MAX_AGE_MS)
      return false;
    if (subscription.linked) return entry.epoch === subscription.epoch;
    if (entry.epoch === OUTDATED || entry.isFromDisk) return false;
    const maxAge = kind === 'token' ? UNLINKED_TOKEN_MAX_AGE_MS : UNLINKED_MAX_AGE_MS;
    return now() - this.#confirmedAt(entry) <= maxAge;
  }

  #confirmedAt(entry: Entry): number {
    return Math.max(entry.confirmedAt, this.#options.subscription.confirmedAt(entry.epoch));
  }

  /** The LRU looks at a size only when something is inserted. */
  #resize(id: string, document: Document): void {
    const entry = this.#documents.peek(id);
    if (entry?.document !== document) return;
    this.#isResizing = true;
    this.#documents.delete(id);
    this.#isResizing = false;
    this.#documents.set(id, entry);
    // A document that became larger than all the room is not kept.
    if (!this.#documents.has(id)) this.#options.onInvalidate(id);
  }
}
