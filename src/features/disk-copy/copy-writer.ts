import { randomUUID } from 'node:crypto';
import type { Document } from '../../snapshot/document/document.ts';
import { encodeLoaded } from '../../snapshot/document/format.ts';
import type { CopyFeed, DocumentReadAt, ReadAt } from '../../snapshot/read/durable-copy.ts';
import { type CopyFolder, type CopyLimits, isToken } from './copy-folder.ts';
import type { CopyHealth } from './health.ts';

/** Milliseconds for the documents of one write. The rest follows with the next write, after newer removals. */
const WRITE_MS = 250;
/** Bytes of documents that may wait. */
const PENDING_AT_MOST = 32_000_000;
/** A document that is read again and again is written this many times within its limit. */
const TOUCHES = 30;
/** Ids whose written version is remembered. */
const REMEMBERED = 100_000;

/** What happens next to the file of one document. */
interface Change {
  /** Older versions are removed. */
  readonly version: number;
  isRemoved: boolean;
  /** Written after the removals. */
  readonly document?: Document;
  readonly read?: DocumentReadAt;
  readonly bytes: number;
}

interface CopyWriterOptions {
  readonly folder: CopyFolder;
  readonly limits: CopyLimits;
  readonly health: CopyHealth;
  readonly now: () => number;
  /** Milliseconds between two writes. */
  readonly everyMs: number;
}

/** Writes a disk copy in the background: removals first, then documents, and the confirmation last. */
export class CopyWriter implements Disposable {
  readonly #options: CopyWriterOptions;
  readonly #timer: NodeJS.Timeout;
  /** Distinguishes the epochs of this process from those of others. */
  readonly #run = randomUUID();
  readonly #changes = new Map<string, Change>();
  #pendingBytes = 0;
  /** Id → the version on disk, and when it was read. */
  readonly #stored = new Map<string, ReadAt & { readonly version: number }>();
  /** The copy lacks documents that memory has. */
  #isIncomplete = false;
  feed: CopyFeed | undefined;
  #lineage: string | undefined;
  /** When Postgres named the lineage, in milliseconds; 0 if only the cache did. */
  #namedAt = 0;
  #writing: Promise<boolean> | undefined;

  constructor(options: CopyWriterOptions) {
    this.#options = options;
    this.#timer = setInterval(() => void this.#write(), options.everyMs);
    this.#timer.unref();
  }

  get lineage(): string | undefined {
    return this.#lineage;
  }

  follow(lineage: string, namedAt: number): void {
    if (lineage !== this.#lineage) {
      this.#clear();
      this.#stored.clear();
    }
    this.#lineage = lineage;
    this.#namedAt = namedAt;
  }

  /** Removes older versions with the next write. */
  removeOlder(id: string, version: number): void {
    if ((this.#changes.get(id)?.version ?? 0) >= version) return;
    this.#set(id, { version, isRemoved: false, bytes: 0 });
    if ((this.#stored.get(id)?.version ?? version) < version) this.#stored.delete(id);
  }

  /** Writes the document soon. */
  store(id: string, document: Document, read: DocumentReadAt): void {
    if (this.#lineage === undefined || this.#add(id, document, read)) return;
    this.#isIncomplete = true;
    // The disk is slower than the reads.
    if (!this.isOutdated(id, document.version)) this.#options.health.count('overflow');
  }

  /** Returns true if a newer version is on its way. */
  isOutdated(id: string, version: number): boolean {
    return (this.#changes.get(id)?.version ?? 0) > version;
  }

  /** Returns true if this version is on disk, and nothing older. */
  isStored(id: string, version: number): boolean {
    return this.#stored.get(id)?.version === version;
  }

  setStored(id: string, version: number, { epoch, at }: ReadAt): void {
    if (this.#stored.size >= REMEMBERED) this.#stored.clear();
    this.#stored.set(id, { version, epoch, at });
  }

  /** Returns the document that waits to be written. */
  pending(id: string): Pick<Change, 'document' | 'read'> | undefined {
    return this.#changes.get(id);
  }

  /** Writes everything that waits now. */
  async flush(): Promise<void> {
    await this.#writing;
    while ((await this.#write()) && (this.#changes.size > 0 || this.#isIncomplete));
  }

  /** Returns false if a newer version is on its way, or if too much waits. Memory gives the document again later. */
  #add(id: string, document: Document, read: DocumentReadAt): boolean {
    const { version, size: bytes } = document;
    if (this.isOutdated(id, version)) return false;
    const stored = this.#stored.get(id);
    if (stored?.version === version && stored.epoch === read.epoch) {
      const limitMs = limitOf(this.#options.limits, id);
      if (read.at - stored.at < limitMs / TOUCHES) return true;
    }
    const others = this.#pendingBytes - (this.#changes.get(id)?.bytes ?? 0);
    if (others > 0 && others + bytes > PENDING_AT_MOST) return false;
    this.#set(id, { version, isRemoved: false, document, read, bytes });
    return true;
  }

  #set(id: string, change: Change | undefined): void {
    this.#pendingBytes += (change?.bytes ?? 0) - (this.#changes.get(id)?.bytes ?? 0);
    this.#changes.delete(id);
    if (change) this.#changes.set(id, change);
  }

  #clear(): void {
    this.#changes.clear();
    this.#pendingBytes = 0;
  }

  /** Returns false if the write failed, or had no folder to write to. */
  #write(): Promise<boolean> {
    this.#writing ??= this.#writeNow()
      .catch((error: unknown) => {
        this.#options.health.failed(error);
        return false;
      })
      .finally(() => {
        this.#writing = undefined;
      });
    return this.#writing;
  }

  async #writeNow(): Promise<boolean> {
    const lineage = this.#lineage;
    if (lineage === undefined) return false;
    const { folder, health, now } = this.#options;
    // Taken before the removals: this process knows every version that was published until then, and removes what is older.
    const confirmed = this.feed?.confirmed();
    const claimed = await folder.claim(lineage, this.#namedAt);
    if (claimed === 'refused') {
      this.#clear();
      return false;
    }
    if (claimed === 'begun') {
      this.#stored.clear();
      this.#isIncomplete = true;
    }
    for (const [id, change] of [...this.#changes]) {
      if (change.isRemoved) continue;
      await folder.removeOlder(lineage, id, change.version);
      change.isRemoved = true;
      if (!change.document && this.#changes.get(id) === change) this.#set(id, undefined);
    }
    await this.#writeDocuments(lineage);
    if (lineage !== this.#lineage) return false;
    if (confirmed) {
      const { at, stamps } = confirmed;
      await folder.confirm({ lineage, stretch: this.#stretchOf(confirmed), at, stamps: [...stamps] });
    }
    if (folder.isTidyDue(now())) health.measured(await folder.tidy(now()));
    health.succeeded();
    return true;
  }

  async #writeDocuments(lineage: string): Promise<void> {
    const { folder, health, now } = this.#options;
    const until = performance.now() + WRITE_MS;
    this.#addAllIfIncomplete();
    for (const [id, change] of this.#changes) {
      const { version, document, read } = change;
      if (performance.now() > until || lineage !== this.#lineage) return;
      if (!document || !read) continue;
      if (folder.isTidyDue(now())) health.measured(await folder.tidy(now()));
      const head = { lineage, id, version, stretch: this.#stretchOf(read), readAt: Math.floor(read.at) };
      if (await folder.write({ ...head, asOf: read.asOf }, encodeLoaded(id, document))) health.written.inc();
      if (this.#changes.get(id) !== change) continue;
      this.setStored(id, version, read);
      this.#set(id, undefined);
    }
  }

  #addAllIfIncomplete(): void {
    if (!this.#isIncomplete || this.#changes.size > 0) return;
    this.#isIncomplete = false;
    for (const { id, document, ...read } of this.feed?.documents() ?? [])
      if (!this.#add(id, document, read)) this.#isIncomplete = true;
  }

  #stretchOf({ epoch }: ReadAt): string {
    return `${this.#run}-${epoch}`;
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }
}

/** Returns how long a document that nothing confirms may be given, in milliseconds. */
export const limitOf = (limits: CopyLimits, id: string): number =>
  isToken(id) ? limits.tokenStaleLimitMs : limits.staleLimitMs;
