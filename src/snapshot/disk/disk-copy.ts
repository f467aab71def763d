import { randomUUID } from 'node:crypto';
import type { Logger } from 'pino';
import { withTimeout } from '../../domain/timeout.ts';
import { Unavailable } from '../document/answer.ts';
import type { Document } from '../document/document.ts';
import { decodeDocument, encodeLoaded } from '../document/format.ts';
import { type DocumentName, documentId } from '../document/keys.ts';
import { Semaphore } from '../read/semaphore.ts';
import { CopyFolder, type CopyLimits, DamagedFile, isDocumentId } from './copy-folder.ts';
import { PendingDocuments, type ReadAt } from './pending-documents.ts';

export interface DiskCopyOptions {
  /** As SNAPSHOT_DIR names it; made where it is not there. Several processes may share it. */
  readonly folder: string;
  readonly limits: CopyLimits;
  readonly logger: Logger;
  readonly now?: () => number;
  /** Milliseconds between two writes. */
  readonly everyMs?: number;
}

/** The copy's view of its reader. */
export interface CopyFeed {
  /** The epoch in which memory is known to be what the cache has, and since when; undefined while no messages arrive. */
  confirmed(): ReadAt | undefined;
  /** Everything that memory holds and may be kept. */
  documents(): Iterable<{ readonly id: string; readonly document: Document } & ReadAt>;
  stamps(): Iterable<readonly [id: string, stamp: string]>;
}

type Failure = 'damaged' | 'failed' | 'full' | 'overflow' | 'slow';

/** Counted for the metrics. */
export interface DiskCopyCounts {
  bytes: number;
  documents: number;
  written: number;
  readonly failures: Map<Failure, number>;
}

/** Half of the second that a restart may lose. */
const EVERY_MS = 500;
/** Milliseconds of one write. What is left follows with the next one, after newer removals. */
const WRITE_MS = 250;
const TIDY_EVERY_MS = 300_000;
/** Milliseconds that a read may take if nothing else answers. */
const READ_MS = 2000;
/** Milliseconds that an answer waits for the version on disk. A slower disk is not waited for. */
const NEWEST_MS = 250;
/** Reads at once: a disk that hangs must leave threads for the rest of the process. */
const READS = 2;
const WAITING_READS = 256;
/** Bytes that may wait to be written. */
const PENDING_AT_MOST = 32_000_000;
/** No document may take more than this part of the limit. */
const LARGEST = 16;
/** Share of the limit that is written until the next `tidy`: other processes write to the folder as well. */
const UNSEEN = 0.05;
/** A document that is read again and again is written at so many times within its limit. */
const TOUCHES = 30;
/** A document in a file may be from the future by this much (ms): clocks are set back. */
const CLOCK_TOLERANCE_MS = 60_000;
/** The epoch of a version that was found on disk. */
const OF_THE_COPY = { epoch: -1, at: 0 };

/**
 * A reader's own copy, on disk, of the documents that it serves. It answers when nothing else does, also after a restart.
 *
 * Everything is written in the background, twice a second: after a restart the copy may have what was true a second
 * before the stop. A revocation is the exception. Its tombstone is on disk before `heard` or `given` returns.
 */
export class DiskCopy implements AsyncDisposable {
  readonly counts: DiskCopyCounts = { bytes: 0, documents: 0, written: 0, failures: new Map() };
  readonly #limits: CopyLimits;
  readonly #logger: Logger;
  readonly #now: () => number;
  readonly #folder: CopyFolder;
  readonly #timer: NodeJS.Timeout;
  /** Distinguishes this process' epochs from those of others. */
  readonly #run = randomUUID();
  readonly #reads = new Semaphore({ atOnce: READS, waitingAtMost: WAITING_READS, deadlineMs: READ_MS });
  readonly #pending = new PendingDocuments(PENDING_AT_MOST);
  /** Id → the version below which its file has to go. */
  readonly #outdated = new Map<string, number>();
  /** Stamps that are not written yet. */
  readonly #stamps = new Map<string, string>();
  #feed: CopyFeed | undefined;
  /** The copy lacks some of what memory holds. */
  #isIncomplete = false;
  #lineage: string | undefined;
  /** When PostgreSQL named it, in milliseconds; 0 if only the cache did. */
  #namedAt = 0;
  #writing: Promise<boolean> | undefined;
  #tidiedAt = Number.NEGATIVE_INFINITY;
  #isSlow = false;
  #isReported = false;

  constructor(options: DiskCopyOptions) {
    this.#limits = options.limits;
    this.#logger = options.logger;
    this.#now = options.now ?? Date.now;
    this.#folder = new CopyFolder(options.folder, options.limits);
    this.#timer = setInterval(() => void this.#write(), options.everyMs ?? EVERY_MS);
    this.#timer.unref();
  }

  feedFrom(feed: CopyFeed): void {
    this.#feed = feed;
  }

  /** Documents are of this lineage from now on. @param isSure PostgreSQL has named it */
  follow(lineage: string, isSure: boolean): void {
    if (lineage !== this.#lineage) {
      this.#pending.clear();
      this.#outdated.clear();
      this.#stamps.clear();
    }
    this.#lineage = lineage;
    this.#namedAt = isSure ? Math.floor(this.#now()) : 0;
  }

  /** The lineage of the copy. */
  async lineage(): Promise<string | undefined> {
    return (await this.#read(() => this.#folder.owner()))?.lineage;
  }

  /** A newer version was published. */
  heard(id: string, version: number): void {
    const lineage = this.#lineage;
    if (lineage === undefined || !(version > 1) || !isDocumentId(id)) return;
    this.#pending.dropOlder(id, version);
    if (id.startsWith('token:')) {
      if (this.#isDone(() => this.#folder.revoke(lineage, id, version))) {
        this.#pending.setKept(id, version, OF_THE_COPY);
        return;
      }
    }
    this.#outdated.set(id, Math.max(version, this.#outdated.get(id) ?? 0));
  }

  /** This document, or the knowledge that there is none, is about to be given: nothing older may follow. */
  given(id: string, document: Document | undefined): void {
    if (document) {
      if (!this.#pending.isKept(id, document.version)) this.heard(id, document.version);
      return;
    }
    this.#pending.remove(id);
    if (this.#lineage === undefined) return;
    // A tombstone for each guess would fill the disk.
    if (id.startsWith('token:') && this.#isDone(() => this.#folder.removeNow(id))) return;
    this.#outdated.set(id, Number.MAX_SAFE_INTEGER);
  }

  /** The newest version on disk, if that may be newer than this one and the disk answers in time; else 0. */
  async newest(id: string, version: number): Promise<number> {
    const lineage = this.#lineage;
    if (lineage === undefined || this.#isSlow || this.#pending.isKept(id, version)) return 0;
    let newest = 0;
    const reading = this.#read(() => this.#folder.versionOf(lineage, id)).then((found = 0) => {
      newest = found;
    });
    this.#isSlow = !(await withTimeout(NEWEST_MS, reading));
    return newest;
  }

  /** Hands a document over, to be written soon. */
  keep(id: string, document: Document, read: ReadAt): void {
    if (this.#lineage === undefined) return;
    // Memory hands the document over again, if it is still true then.
    const isOutdated = (this.#outdated.get(id) ?? 0) > document.version;
    if (!isOutdated && this.#pending.add(id, document, read, this.#limitOf(id) / TOUCHES)) return;
    this.#isIncomplete = true;
    // The disk is slower than the reads.
    if (!isOutdated) this.#count('overflow');
  }

  keepStamp(id: string, stamp: string): void {
    this.#stamps.set(id, stamp);
  }

  /** The document, if it is young enough and no newer version was given or heard. */
  async read(
    name: DocumentName,
  ): Promise<{ readonly document: Document; readonly knownAt: number } | undefined> {
    const lineage = this.#lineage;
    if (lineage === undefined) return undefined;
    const id = documentId(name);
    const pending = this.#pending.get(id);
    if (pending) return this.#ifYoung(id, { document: pending.document, knownAt: pending.at });
    const found = await this.#read(() => this.#folder.read(lineage, id));
    if (!found || lineage !== this.#lineage || (this.#outdated.get(id) ?? 0) > found.version)
      return undefined;
    const document = decodeDocument(name, found.value);
    if (document?.version !== found.version) {
      this.#failed(new DamagedFile(`a damaged document was removed: ${name.kind}`));
      void this.#read(() => this.#folder.remove(id));
      return undefined;
    }
    return this.#ifYoung(id, { document, knownAt: found.knownAt });
  }

  /** The machines of all lists in the copy, by region. */
  async *machines(): AsyncGenerator<readonly [regionId: number, machineIds: Iterable<string>]> {
    const lineage = this.#lineage;
    for (const regionId of (lineage && (await this.#read(() => this.#folder.regions()))) || []) {
      const name = { kind: 'region', regionId } as const;
      const found = await this.#read(() => this.#folder.read(lineage ?? '', documentId(name)));
      const document = found && decodeDocument(name, found.value);
      if (document && lineage === this.#lineage) yield [regionId, document.keys()];
    }
  }

  /** When sources were last read, see `loadFreshness`. */
  async stamps(): Promise<readonly (readonly [id: string, stamp: string])[]> {
    const lineage = this.#lineage;
    return (lineage && (await this.#read(() => this.#folder.stamps(lineage)))) || [];
  }

  /** Writes everything that waits now. */
  async flush(): Promise<void> {
    await this.#writing;
    while ((await this.#write()) && this.#pending.size > 0);
  }

  /** False if it failed, or had nothing to write to. */
  #write(): Promise<boolean> {
    this.#writing ??= this.#writeNow()
      .catch((error: unknown) => {
        this.#failed(error);
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
    const until = performance.now() + WRITE_MS;
    // Both before the removals: every version published until then has been heard, and is among them.
    const confirmed = this.#feed?.confirmed();
    const stamps = new Map(this.#stamps);
    const claimed = await this.#folder.claim(lineage, this.#namedAt);
    if (claimed === 'refused') {
      this.#pending.clear();
      this.#outdated.clear();
      return false;
    }
    if (claimed === 'begun') this.#keepAll();
    for (const [id, version] of [...this.#outdated]) {
      await this.#folder.removeOlder(lineage, id, version);
      if (this.#outdated.get(id) === version) this.#outdated.delete(id);
    }
    await this.#writeDocuments(lineage, until);
    if (lineage !== this.#lineage) return false;
    if (stamps.size > 0) await this.#folder.writeStamps(lineage, stamps);
    for (const [id, stamp] of stamps) if (this.#stamps.get(id) === stamp) this.#stamps.delete(id);
    await this.#folder.renew(lineage, this.#namedAt);
    if (confirmed) await this.#folder.confirm(lineage, this.#stretchOf(confirmed), confirmed.at);
    this.#succeeded();
    const isUnseen = this.#folder.added > this.#limits.bytes * UNSEEN;
    if (isUnseen || this.#now() - this.#tidiedAt > TIDY_EVERY_MS) await this.#tidy();
    return true;
  }

  async #writeDocuments(lineage: string, until: number): Promise<void> {
    while (performance.now() < until && lineage === this.#lineage) {
      this.#refill();
      const [id, pending] = this.#pending.first() ?? [];
      if (id === undefined || !pending) return;
      const { document, at } = pending;
      const value = encodeLoaded(id, document);
      if (!this.#folder.hasRoom(value.length) && this.#folder.added > 0) await this.#tidy();
      if (value.length <= this.#limits.bytes / LARGEST && this.#folder.hasRoom(value.length)) {
        const { version } = document;
        const stretch = this.#stretchOf(pending);
        await this.#folder.write({ lineage, id, version, stretch, readAt: Math.floor(at) }, value);
        this.counts.written += 1;
      }
      if (this.#pending.get(id) === pending) this.#pending.setKept(id, document.version, pending);
      this.#pending.remove(id, pending);
    }
  }

  async #tidy(): Promise<void> {
    this.#tidiedAt = this.#now();
    Object.assign(this.counts, await this.#folder.tidy(this.#now()));
  }

  /** The copy is empty: memory is handed over once more. */
  #keepAll(): void {
    this.#pending.forgetKept();
    this.#isIncomplete = true;
    for (const [id, stamp] of this.#feed?.stamps() ?? []) this.#stamps.set(id, stamp);
  }

  #refill(): void {
    if (!this.#isIncomplete || this.#pending.size > 0) return;
    this.#isIncomplete = false;
    for (const { id, document, ...read } of this.#feed?.documents() ?? []) this.keep(id, document, read);
  }

  #stretchOf({ epoch }: ReadAt): string {
    return `${this.#run}-${epoch}`;
  }

  #limitOf(id: string): number {
    return id.startsWith('token:') ? this.#limits.tokenStaleLimitMs : this.#limits.staleLimitMs;
  }

  #ifYoung<T extends { readonly knownAt: number }>(id: string, found: T): T | undefined {
    const age = this.#now() - found.knownAt;
    return age <= this.#limitOf(id) && age >= -CLOCK_TOLERANCE_MS ? found : undefined;
  }

  /** Undefined if the disk fails, or does not answer in time. */
  async #read<T>(work: () => Promise<T>): Promise<T | undefined> {
    try {
      const found = await this.#reads.run(work);
      this.#isSlow = false;
      return found;
    } catch (error) {
      this.#failed(error);
      return undefined;
    }
  }

  /** Does what blocks, unless the disk is known to be slow. False if it was not done. */
  #isDone(work: () => void): boolean {
    if (this.#isSlow) return false;
    try {
      work();
      return true;
    } catch (error) {
      this.#failed(error);
      return false;
    }
  }

  #failed(error: unknown): void {
    const reason = reasonOf(error);
    this.#count(reason);
    if (this.#isReported) return;
    this.#isReported = true;
    this.#logger.warn(
      { reason, why: error instanceof Error ? error.message : String(error) },
      'the copy in SNAPSHOT_DIR cannot be used; serving goes on without it',
    );
  }

  #succeeded(): void {
    if (this.#isReported) this.#logger.info('the copy in SNAPSHOT_DIR is written again');
    this.#isReported = false;
    this.#isSlow = false;
  }

  #count(reason: Failure): void {
    this.counts.failures.set(reason, (this.counts.failures.get(reason) ?? 0) + 1);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer);
    await withTimeout(READ_MS, this.flush());
  }
}

function reasonOf(error: unknown): Failure {
  if (error instanceof DamagedFile) return 'damaged';
  if (error instanceof Unavailable) return 'slow';
  const { code } = error as NodeJS.ErrnoException;
  return code === 'ENOSPC' || code === 'EDQUOT' ? 'full' : 'failed';
}
