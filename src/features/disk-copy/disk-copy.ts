import type { Logger } from 'pino';
import { withTimeout } from '../../domain/timeout.ts';
import type { Document } from '../../snapshot/document/document.ts';
import { decodeDocument } from '../../snapshot/document/format.ts';
import { type DocumentName, documentId } from '../../snapshot/document/keys.ts';
import type { CopyFeed, DocumentReadAt, DurableCopy } from '../../snapshot/read/durable-copy.ts';
import { boundedBy, later, timeBy } from '../../snapshot/read/freshness.ts';
import { Semaphore } from '../../snapshot/read/postgres/semaphore.ts';
import type { DocumentTier, TieredResult } from '../../snapshot/read/tiers/tier.ts';
import { DamagedFile } from './checksummed-file.ts';
import { CopyFolder, type CopyLimits, isDocumentId, isToken } from './copy-folder.ts';
import { CopyWriter, limitOf } from './copy-writer.ts';
import { CopyHealth } from './health.ts';

export interface DiskCopyOptions {
  /** As SNAPSHOT_DIR names it. It is created if missing. Several processes may share it. */
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
/** Milliseconds that an answer waits for the version on disk. It does not wait for a slower disk. */
const NEWEST_MS = 250;
/** Reads at once: a disk that hangs must leave threads for the rest of the process. */
const READS = 2;
const WAITING_READS = 256;
/** A file may be from the future by this much (ms): clocks are set back. */
const CLOCK_TOLERANCE_MS = 60_000;
/** The epoch of a revocation on disk. */
const REVOKED_AT = { epoch: -1, at: 0 };

/**
 * A reader's own copy, on disk, of the documents that it serves. It answers if no other tier does, also after a restart.
 *
 * The background writes twice a second, so a restart loses at most one second. A revocation is the exception: its
 * tombstone is on disk before `published` or `given` returns.
 */
export class DiskCopy implements DurableCopy, AsyncDisposable {
  readonly tier: DocumentTier = {
    newest: (id, version) => this.#newest(id, version),
    heard: (id, version) => this.published(id, version),
    given: ({ id }, { document, epoch, at, asOf }) => {
      this.given(id, document);
      if (document && epoch !== undefined) this.store(id, document, { epoch, at, asOf });
    },
    recall: async ({ name, atLeast }) => {
      const found = await this.read(name);
      return found?.document && found.document.version >= atLeast ? found : undefined;
    },
  };
  readonly health: CopyHealth;
  readonly #limits: CopyLimits;
  readonly #now: () => number;
  readonly #folder: CopyFolder;
  readonly #writer: CopyWriter;
  readonly #reads = new Semaphore({ atOnce: READS, waitingAtMost: WAITING_READS, deadlineMs: READ_MS });

  constructor({ folder, limits, logger, now = Date.now, everyMs = EVERY_MS }: DiskCopyOptions) {
    this.#limits = limits;
    this.#now = now;
    this.#folder = new CopyFolder(folder, limits);
    this.health = new CopyHealth(logger);
    this.#writer = new CopyWriter({ folder: this.#folder, limits, health: this.health, now, everyMs });
  }

  feedFrom(feed: CopyFeed): void {
    this.#writer.feed = feed;
  }

  follow(lineage: string, isSure: boolean): void {
    this.#writer.follow(lineage, isSure ? Math.floor(this.#now()) : 0);
  }

  async lineage(): Promise<string | undefined> {
    return (await this.#read(() => this.#folder.owner()))?.lineage;
  }

  /** Removes versions that are older than this one: a token's at once, others with the next write. */
  published(id: string, version: number): void {
    const { lineage } = this.#writer;
    if (lineage === undefined || !(version > 1) || !isDocumentId(id)) return;
    this.#writer.removeOlder(id, version);
    if (isToken(id) && this.#isDone(() => this.#folder.revoke(lineage, id, version)))
      this.#writer.setStored(id, version, REVOKED_AT);
  }

  /** Removes what is older than the document that an answer is about to give, or everything if there is none. */
  given(id: string, document: Document | undefined): void {
    const { lineage } = this.#writer;
    if (document) {
      if (!this.#writer.isStored(id, document.version)) this.published(id, document.version);
      return;
    }
    if (lineage === undefined) return;
    // No tombstone: every guess of a token would leave one, and fill the disk.
    const isRemoved = isToken(id) && this.#isDone(() => this.#folder.removeNow(id));
    if (!isRemoved || this.#writer.pending(id)) this.#writer.removeOlder(id, Number.MAX_SAFE_INTEGER);
  }

  /** Writes a document soon. */
  store(id: string, document: Document, read: DocumentReadAt): void {
    this.#writer.store(id, document, read);
  }

  /** Returns the document, if it is young enough and this process knows no newer version. */
  async read(name: DocumentName): Promise<TieredResult | undefined> {
    const { lineage } = this.#writer;
    if (lineage === undefined) return undefined;
    const id = documentId(name);
    const { document: pending, read } = this.#writer.pending(id) ?? {};
    if (pending && read) return this.#ifYoung(id, pending, read.at, read.asOf);
    const found = await this.#read(() => this.#folder.read(lineage, id));
    if (!found || lineage !== this.#writer.lineage || this.#writer.isOutdated(id, found.version))
      return undefined;
    const document = decodeDocument(name, found.value);
    if (document?.version !== found.version) {
      this.health.failed(new DamagedFile(`a damaged document was removed: ${name.kind}`));
      void this.#read(() => this.#folder.remove(id));
      return undefined;
    }
    const asOf = later(found.asOf, timeBy(found.stamps, id, document.sources));
    return this.#ifYoung(id, document, found.knownAt, asOf);
  }

  async *machines(): AsyncGenerator<readonly [regionId: number, machineIds: Iterable<string>]> {
    const { lineage } = this.#writer;
    if (lineage === undefined) return;
    for (const regionId of (await this.#read(() => this.#folder.regions())) ?? []) {
      const name = { kind: 'region', regionId } as const;
      const found = await this.#read(() => this.#folder.read(lineage, documentId(name)));
      const document = found && decodeDocument(name, found.value);
      if (document && lineage === this.#writer.lineage) yield [regionId, document.keys()];
    }
  }

  /** Writes everything that waits now. */
  flush(): Promise<void> {
    return this.#writer.flush();
  }

  /** Returns the newest version on disk, if that may be newer than this one and the disk answers in time; else 0. */
  async #newest(id: string, version: number): Promise<number> {
    const { lineage } = this.#writer;
    if (lineage === undefined || this.health.isSlow || this.#writer.isStored(id, version)) return 0;
    let newest = 0;
    const reading = this.#read(() => this.#folder.versionOf(lineage, id)).then((found = 0) => {
      newest = found;
    });
    this.health.isSlow = !(await withTimeout(NEWEST_MS, reading));
    return newest;
  }

  #ifYoung(id: string, document: Document, knownAt: number, asOf: string | undefined) {
    const age = this.#now() - knownAt;
    if (age > limitOf(this.#limits, id) || age < -CLOCK_TOLERANCE_MS) return undefined;
    return { document, tier: 'disk', knownAt, asOf: boundedBy(knownAt, asOf) } as const;
  }

  /** Returns undefined if the disk fails, or does not answer in time. */
  async #read<T>(work: () => Promise<T>): Promise<T | undefined> {
    try {
      const found = await this.#reads.run(work);
      this.health.isSlow = false;
      return found;
    } catch (error) {
      this.health.failed(error);
      return undefined;
    }
  }

  /** Does work that blocks, unless the disk is known to be slow. Returns false if it was not done. */
  #isDone(work: () => void): boolean {
    if (this.health.isSlow) return false;
    try {
      work();
      return true;
    } catch (error) {
      this.health.failed(error);
      return false;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#writer[Symbol.dispose]();
    await withTimeout(READ_MS, this.flush());
  }
}
