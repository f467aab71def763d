import type { Logger } from 'pino';
import { withTimeout } from '../../domain/servers/timeout.ts';
import type { Document } from '../../snapshot/document/document.ts';
import { decodeDocument } from '../../snapshot/document/format.ts';
import { type DocumentName, documentId } from '../../snapshot/document/keys.ts';
import type { CopyFeed, DocumentReadAt, DurableCopy } from '../../snapshot/read/durable-copy.ts';
import { later, timeBy } from '../../snapshot/read/freshness.ts';
import { Semaphore } from '../../snapshot/read/postgres/semaphore.ts';
import { CopyFolder, type CopyLimits, isDocumentId } from './copy-folder.ts';
import { CopyHealth, type DiskCopyCounts } from './copy-health.ts';
import { CopyWriter, limitOf } from './copy-writer.ts';
import { DamagedFile } from './sealed-files.ts';
import { diskTier, type StoredInCopy } from './tier.ts';

export interface DiskCopyOptions {
  /** As SNAPSHOT_DIR names it; made where it is not there. Several processes may share it. */
  readonly folder: string;
  readonly limits: CopyLimits;
  readonly logger: Logger;
  readonly now?: () => number;
  /** Milliseconds between two writes. */
  readonly everyMs?: number;
}

/** Half of the second that a restart may lose. */
const EVERY_MS = 500;
/** Milliseconds that a read may take if nothing else answers. */
const READ_MS = 2000;
/** Milliseconds that an answer waits for the version on disk. A slower disk is not waited for. */
const NEWEST_MS = 250;
/** Reads at once: a disk that hangs must leave threads for the rest of the process. */
const READS = 2;
const WAITING_READS = 256;
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
export class DiskCopy implements DurableCopy, AsyncDisposable {
  readonly tier = diskTier(this);
  readonly #limits: CopyLimits;
  readonly #now: () => number;
  readonly #folder: CopyFolder;
  readonly #health: CopyHealth;
  readonly #writer: CopyWriter;
  readonly #reads = new Semaphore({ atOnce: READS, waitingAtMost: WAITING_READS, deadlineMs: READ_MS });

  constructor({ folder, limits, logger, now = Date.now, everyMs = EVERY_MS }: DiskCopyOptions) {
    this.#limits = limits;
    this.#now = now;
    this.#folder = new CopyFolder(folder, limits);
    this.#health = new CopyHealth(logger);
    this.#writer = new CopyWriter({ folder: this.#folder, limits, health: this.#health, now, everyMs });
  }

  get counts(): DiskCopyCounts {
    return this.#health.counts;
  }

  feedFrom(feed: CopyFeed): void {
    this.#writer.feedFrom(feed);
  }

  /** Documents are of this lineage from now on. @param isSure PostgreSQL has named it */
  follow(lineage: string, isSure: boolean): void {
    this.#writer.follow(lineage, isSure ? Math.floor(this.#now()) : 0);
  }

  /** The lineage of the copy. */
  async lineage(): Promise<string | undefined> {
    return (await this.#read(() => this.#folder.owner()))?.lineage;
  }

  /** A newer version was published. */
  heard(id: string, version: number): void {
    const { lineage, pending } = this.#writer;
    if (lineage === undefined || !(version > 1) || !isDocumentId(id)) return;
    pending.dropOlder(id, version);
    if (id.startsWith('token:') && this.#isDone(() => this.#folder.revoke(lineage, id, version)))
      pending.setKept(id, version, OF_THE_COPY);
    else this.#writer.outdate(id, version);
  }

  /** This document, or the knowledge that there is none, is about to be given: nothing older may follow. */
  given(id: string, document: Document | undefined): void {
    const { lineage, pending } = this.#writer;
    if (document) {
      if (!pending.isKept(id, document.version)) this.heard(id, document.version);
      return;
    }
    pending.remove(id);
    if (lineage === undefined) return;
    // A tombstone for each guess would fill the disk.
    if (id.startsWith('token:') && this.#isDone(() => this.#folder.removeNow(id))) return;
    this.#writer.outdate(id, Number.MAX_SAFE_INTEGER);
  }

  /** The newest version on disk, if that may be newer than this one and the disk answers in time; else 0. */
  async newest(id: string, version: number): Promise<number> {
    const { lineage, pending } = this.#writer;
    if (lineage === undefined || this.#health.isSlow || pending.isKept(id, version)) return 0;
    let newest = 0;
    const reading = this.#read(() => this.#folder.versionOf(lineage, id)).then((found = 0) => {
      newest = found;
    });
    this.#health.isSlow = !(await withTimeout(NEWEST_MS, reading));
    return newest;
  }

  /** Hands a document over, to be written soon. */
  keep(id: string, document: Document, read: DocumentReadAt): void {
    this.#writer.keep(id, document, read);
  }

  /** The document, if it is young enough and no newer version was given or heard. */
  async read(name: DocumentName): Promise<StoredInCopy | undefined> {
    const { lineage } = this.#writer;
    if (lineage === undefined) return undefined;
    const id = documentId(name);
    const pending = this.#writer.pending.get(id);
    if (pending) return this.#ifYoung(id, { ...pending, knownAt: pending.at });
    const found = await this.#read(() => this.#folder.read(lineage, id));
    if (!found || lineage !== this.#writer.lineage || this.#writer.isOutdated(id, found.version))
      return undefined;
    const document = decodeDocument(name, found.value);
    if (document?.version !== found.version) {
      this.#health.failed(new DamagedFile(`a damaged document was removed: ${name.kind}`));
      void this.#read(() => this.#folder.remove(id));
      return undefined;
    }
    const asOf = later(found.asOf, timeBy(found.stamps, id, document.sources));
    return this.#ifYoung(id, { document, knownAt: found.knownAt, asOf });
  }

  /** The machines of all lists in the copy, by region. */
  async *machines(): AsyncGenerator<readonly [regionId: number, machineIds: Iterable<string>]> {
    const { lineage } = this.#writer;
    for (const regionId of (lineage && (await this.#read(() => this.#folder.regions()))) || []) {
      const name = { kind: 'region', regionId } as const;
      const found = await this.#read(() => this.#folder.read(lineage ?? '', documentId(name)));
      const document = found && decodeDocument(name, found.value);
      if (document && lineage === this.#writer.lineage) yield [regionId, document.keys()];
    }
  }

  /** Writes everything that waits now. */
  flush(): Promise<void> {
    return this.#writer.flush();
  }

  #ifYoung(id: string, found: StoredInCopy): StoredInCopy | undefined {
    const age = this.#now() - found.knownAt;
    return age <= limitOf(this.#limits, id) && age >= -CLOCK_TOLERANCE_MS ? found : undefined;
  }

  /** Undefined if the disk fails, or does not answer in time. */
  async #read<T>(work: () => Promise<T>): Promise<T | undefined> {
    try {
      const found = await this.#reads.run(work);
      this.#health.isSlow = false;
      return found;
    } catch (error) {
      this.#health.failed(error);
      return undefined;
    }
  }

  /** Does what blocks, unless the disk is known to be slow. False if it was not done. */
  #isDone(work: () => void): boolean {
    if (this.#health.isSlow) return false;
    try {
      work();
      return true;
    } catch (error) {
      this.#health.failed(error);
      return false;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#writer[Symbol.dispose]();
    await withTimeout(READ_MS, this.flush());
  }
}
