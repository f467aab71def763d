import { randomUUID } from 'node:crypto';
import type { Document } from '../../snapshot/document/document.ts';
import { encodeLoaded } from '../../snapshot/document/format.ts';
import type { CopyFeed, DocumentReadAt, ReadAt } from '../../snapshot/read/durable-copy.ts';
import type { CopyFolder, CopyLimits } from './copy-folder.ts';
import type { CopyHealth } from './copy-health.ts';
import { PendingDocuments } from './pending-documents.ts';

export interface CopyWriterOptions {
  readonly folder: CopyFolder;
  readonly limits: CopyLimits;
  readonly health: CopyHealth;
  readonly now: () => number;
  /** Milliseconds between two writes. */
  readonly everyMs: number;
}

/** Milliseconds of one write. What is left follows with the next one, after newer removals. */
const WRITE_MS = 250;
const TIDY_EVERY_MS = 300_000;
/** Bytes that may wait to be written. */
const PENDING_AT_MOST = 32_000_000;
/** No document may take more than this part of the limit. */
const LARGEST = 16;
/** Share of the limit that is written until the next `tidy`: other processes write to the folder as well. */
const UNSEEN = 0.05;
/** A document that is read again and again is written at so many times within its limit. */
const TOUCHES = 30;

/** Writes a disk copy in the background: removals first, then documents, and the confirmation last. */
export class CopyWriter implements Disposable {
  readonly pending = new PendingDocuments(PENDING_AT_MOST);
  /** Id → the version below which its file has to go. */
  readonly #outdated = new Map<string, number>();
  readonly #options: CopyWriterOptions;
  readonly #timer: NodeJS.Timeout;
  /** Distinguishes this process' epochs from those of others. */
  readonly #run = randomUUID();
  /** The stamps that were written last. */
  #stamps: ReadonlyMap<string, string> | undefined;
  #feed: CopyFeed | undefined;
  /** The copy lacks some of what memory holds. */
  #isIncomplete = false;
  #lineage: string | undefined;
  /** When PostgreSQL named it, in milliseconds; 0 if only the cache did. */
  #namedAt = 0;
  #writing: Promise<boolean> | undefined;
  #tidiedAt = Number.NEGATIVE_INFINITY;

  constructor(options: CopyWriterOptions) {
    this.#options = options;
    this.#timer = setInterval(() => void this.#write(), options.everyMs);
    this.#timer.unref();
  }

  feedFrom(feed: CopyFeed): void {
    this.#feed = feed;
  }

  get lineage(): string | undefined {
    return this.#lineage;
  }

  follow(lineage: string, namedAt: number): void {
    if (lineage !== this.#lineage) {
      this.pending.clear();
      this.#outdated.clear();
      this.#stamps = undefined;
    }
    this.#lineage = lineage;
    this.#namedAt = namedAt;
  }

  /** The file of an older version has to go. */
  outdate(id: string, version: number): void {
    this.#outdated.set(id, Math.max(version, this.#outdated.get(id) ?? 0));
  }

  /** True if the file of this version has to go. */
  isOutdated(id: string, version: number): boolean {
    return (this.#outdated.get(id) ?? 0) > version;
  }

  keep(id: string, document: Document, read: DocumentReadAt): void {
    if (this.#lineage === undefined) return;
    // Memory hands the document over again, if it is still true then.
    const isOutdated = this.isOutdated(id, document.version);
    const { limits, health } = this.#options;
    if (!isOutdated && this.pending.add(id, document, read, limitOf(limits, id) / TOUCHES)) return;
    this.#isIncomplete = true;
    // The disk is slower than the reads.
    if (!isOutdated) health.count('overflow');
  }

  /** Writes everything that waits now. */
  async flush(): Promise<void> {
    await this.#writing;
    while ((await this.#write()) && this.pending.size > 0);
  }

  /** False if it failed, or had nothing to write to. */
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
    const { folder, health } = this.#options;
    const until = performance.now() + WRITE_MS;
    // Before the removals: every version published until then has been heard, and is among them.
    const confirmed = this.#feed?.confirmed();
    const claimed = await folder.claim(lineage, this.#namedAt);
    if (claimed === 'refused') {
      this.pending.clear();
      this.#outdated.clear();
      return false;
    }
    if (claimed === 'begun') this.#keepAll();
    for (const [id, version] of [...this.#outdated]) {
      await folder.removeOlder(lineage, id, version);
      if (this.#outdated.get(id) === version) this.#outdated.delete(id);
    }
    await this.#writeDocuments(lineage, until);
    if (lineage !== this.#lineage) return false;
    await folder.renew(lineage, this.#namedAt);
    if (confirmed) {
      const stretch = this.#stretchOf(confirmed);
      if (confirmed.stamps !== this.#stamps) await folder.writeStamps(lineage, stretch, confirmed.stamps);
      this.#stamps = confirmed.stamps;
      await folder.confirm(lineage, stretch, confirmed.at);
    }
    health.succeeded();
    await this.#tidyIfDue();
    return true;
  }

  async #writeDocuments(lineage: string, until: number): Promise<void> {
    const { folder, limits, health } = this.#options;
    while (performance.now() < until && lineage === this.#lineage) {
      this.#refill();
      const [id, pending] = this.pending.first() ?? [];
      if (id === undefined || !pending) return;
      const { document, at, asOf } = pending;
      const value = encodeLoaded(id, document);
      if (!folder.hasRoom(value.length) && folder.added > 0) await this.#tidy();
      if (value.length <= limits.bytes / LARGEST && folder.hasRoom(value.length)) {
        const { version } = document;
        const stretch = this.#stretchOf(pending);
        await folder.write({ lineage, id, version, stretch, readAt: Math.floor(at), asOf }, value);
        health.counts.written += 1;
      }
      if (this.pending.get(id) === pending) this.pending.setKept(id, document.version, pending);
      this.pending.remove(id, pending);
    }
  }

  async #tidyIfDue(): Promise<void> {
    const { folder, limits, now } = this.#options;
    if (folder.added > limits.bytes * UNSEEN || now() - this.#tidiedAt > TIDY_EVERY_MS) await this.#tidy();
  }

  async #tidy(): Promise<void> {
    const { folder, health, now } = this.#options;
    this.#tidiedAt = now();
    Object.assign(health.counts, await folder.tidy(now()));
  }

  /** The copy is empty: memory is handed over once more. */
  #keepAll(): void {
    this.pending.forgetKept();
    this.#isIncomplete = true;
    this.#stamps = undefined;
  }

  #refill(): void {
    if (!this.#isIncomplete || this.pending.size > 0) return;
    this.#isIncomplete = false;
    for (const { id, document, ...read } of this.#feed?.documents() ?? []) this.keep(id, document, read);
  }

  #stretchOf({ epoch }: ReadAt): string {
    return `${this.#run}-${epoch}`;
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }
}

/** Milliseconds for which a document may be given that nothing confirms. */
export const limitOf = (limits: CopyLimits, id: string): number =>
  id.startsWith('token:') ? limits.tokenStaleLimitMs : limits.staleLimitMs;
