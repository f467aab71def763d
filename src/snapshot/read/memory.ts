import { LRUCache } from 'lru-cache';
import type { Document } from '../document/document.ts';
import type { DocumentName } from '../document/keys.ts';
import type { CacheLink } from './cache-subscription.ts';

type Kind = DocumentName['kind'];

interface Entry {
  readonly document: Document | undefined;
  /** The link's epoch in which it was read; in a later one it has to be compared first. */
  epoch: number;
  /** When it was last known to be what the cache or Postgres holds, in milliseconds. */
  confirmedAt: number;
}

/** The epoch of an entry of which a newer version was announced: it never is the link's. */
const OUTDATED = 0;

/** While the link is down, memory of this age (ms) is compared with Postgres before it is used. */
const UNLINKED_MAX_AGE_MS = 1000;
const UNLINKED_TOKEN_MAX_AGE_MS = 10_000;
/** For how long a token is believed to be unknown (ms). One that is published is known at once. */
const UNKNOWN_TOKEN_MAX_AGE_MS = 10_000;
/** Bytes that an entry costs beside its document's; also the whole cost of knowing that something does not exist. */
const ENTRY_OVERHEAD = 1300;
const UNKNOWN_TOKEN_SIZE = 400;

export interface DocumentMemoryOptions {
  readonly link: CacheLink;
  readonly now: () => number;
  /** Bytes of documents. */
  readonly memoryLimit: number;
  /** Bytes of tokens that are known to be unknown: apart, so that guessing takes no room from documents. */
  readonly unknownTokensLimit: number;
  /** Milliseconds for which memory answers when neither cache nor Postgres does. */
  readonly staleLimitMs: number;
  readonly tokenStaleLimitMs: number;
  /** Called whenever a document that was current may be so no longer: replaced, outdated, or put out for want of room. */
  readonly onLoss: () => void;
}

/** Documents as this process holds them, and for how long each may be believed. */
export class DocumentMemory {
  readonly #options: DocumentMemoryOptions;
  readonly #documents: LRUCache<string, Entry>;
  readonly #unknownTokens: LRUCache<string, Entry>;
  /** True while an entry is only taken out to be put back. */
  #weighing = false;

  constructor(options: DocumentMemoryOptions) {
    this.#options = options;
    this.#documents = new LRUCache({
      maxSize: Math.max(1, Math.floor(options.memoryLimit)),
      sizeCalculation: (entry) => (entry.document?.size ?? 0) + ENTRY_OVERHEAD,
      dispose: () => {
        if (!this.#weighing) options.onLoss();
      },
    });
    this.#unknownTokens = new LRUCache({
      maxSize: Math.max(16 * UNKNOWN_TOKEN_SIZE, Math.floor(options.unknownTokensLimit)),
      sizeCalculation: () => UNKNOWN_TOKEN_SIZE,
    });
  }

  /** Bytes that the documents take, by its own count. */
  get size(): number {
    return this.#documents.calculatedSize;
  }

  /** What may be used as it is: a document, or that there is none. Undefined when it has to be read, or compared. */
  current(id: string, kind: Kind): { readonly document: Document | undefined } | undefined {
    const entry = this.#documents.get(id) ?? (kind === 'token' ? this.#unknownTokens.get(id) : undefined);
    return entry && this.#isCurrent(entry, kind) ? entry : undefined;
  }

  /** The document of any age. */
  held(id: string): Document | undefined {
    return this.#documents.peek(id)?.document;
  }

  /** The document, when it may answer because nothing else does. */
  whenAlone(id: string, kind: Kind): Document | undefined {
    const entry = this.#documents.peek(id);
    if (!entry?.document) return undefined;
    const { staleLimitMs, tokenStaleLimitMs, now } = this.#options;
    // The newer version of a token is its revocation.
    if (kind === 'token' && entry.epoch === OUTDATED) return undefined;
    const limit = kind === 'token' ? tokenStaleLimitMs : staleLimitMs;
    return now() - this.#confirmedAt(entry) <= limit ? entry.document : undefined;
  }

  /**
   * @param read.epoch the link's, before anything was read; undefined for what has been overtaken on the way
   * @param read.at when the reading began, in milliseconds
   */
  keep(
    id: string,
    kind: Kind,
    document: Document | undefined,
    read: { readonly epoch: number | undefined; readonly at: number },
  ): void {
    const entry: Entry = { document, epoch: read.epoch ?? OUTDATED, confirmedAt: read.at };
    if (kind === 'token' && !document) {
      this.#documents.delete(id);
      this.#unknownTokens.set(id, entry);
      return;
    }
    this.#unknownTokens.delete(id);
    this.#documents.set(id, entry);
    document?.whenGrown(() => this.#weighAgain(id, document));
  }

  /** A newer version is announced: what is held answers only when nothing else does. */
  outdate(id: string, version: number): void {
    this.#unknownTokens.delete(id);
    const entry = this.#documents.peek(id);
    if ((entry?.document?.version ?? 0) >= version) return;
    // Also where there is no entry any more: what was made of it may be remembered all the same.
    this.#options.onLoss();
    if (!entry) return;
    entry.confirmedAt = this.#confirmedAt(entry);
    entry.epoch = OUTDATED;
  }

  clear(): void {
    this.#documents.clear();
    this.#unknownTokens.clear();
  }

  #isCurrent(entry: Entry, kind: Kind): boolean {
    const { link, now } = this.#options;
    if (kind === 'token' && !entry.document && now() - entry.confirmedAt > UNKNOWN_TOKEN_MAX_AGE_MS)
      return false;
    if (link.linked) return entry.epoch === link.epoch;
    if (entry.epoch === OUTDATED) return false;
    const maxAge = kind === 'token' ? UNLINKED_TOKEN_MAX_AGE_MS : UNLINKED_MAX_AGE_MS;
    return now() - this.#confirmedAt(entry) <= maxAge;
  }

  #confirmedAt(entry: Entry): number {
    return Math.max(entry.confirmedAt, this.#options.link.confirmedAt(entry.epoch));
  }

  /** A size is only looked at when something is put in. */
  #weighAgain(id: string, document: Document): void {
    const entry = this.#documents.peek(id);
    if (entry?.document !== document) return;
    this.#weighing = true;
    this.#documents.delete(id);
    this.#weighing = false;
    this.#documents.set(id, entry);
    // It may have become too large for all the room there is.
    if (!this.#documents.has(id)) this.#options.onLoss();
  }
}
