import { randomUUID } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import type { ReaderContext } from '../../app/feature.ts';
import { settingsOf } from '../../config/settings.ts';
import { steadyNow } from '../../domain/steady-now.ts';
import { withTimeout } from '../../domain/timeout.ts';
import type { Document } from '../../snapshot/document/document.ts';
import { decodeDocument, encodeLoaded } from '../../snapshot/document/format.ts';
import { type DocumentName, documentId } from '../../snapshot/document/keys.ts';
import { OUTDATED } from '../../snapshot/read/consistency.ts';
import { boundedBy, later, type ReadAt, timeBy } from '../../snapshot/read/freshness.ts';
import type { CopyFeed, DurableCopy, Served, TieredResult } from '../../snapshot/read/tiers/tier.ts';
import { CopyFolder, type CopyLimits, isDocumentId, isToken } from './copy-folder.ts';
import { DamagedFile } from './files.ts';
import { CopyHealth } from './health.ts';
import { bytesOfCopy, DISK_COPY_SETTINGS } from './settings.ts';

export interface DiskCopyOptions {
  /** As SNAPSHOT_DIR names it. It is created if missing. Several processes may share it. */
  readonly folder: string;
  readonly limits: CopyLimits;
  readonly logger: Logger;
  readonly now?: () => number;
  /** Between two writes: half of the second that a restart may lose. */
  readonly everyMs?: number;
}

const LAST_WRITE_MS = 2000;
/** Milliseconds that an answer waits for the version on disk. It does not wait for a slower disk. */
const NEWEST_MS = 250;
/** The share of the limit that documents may take while they wait, in memory. */
const PENDING_AT_MOST = 1 / 16;
/** A document that is read again and again is written this many times within its limit. */
const TOUCHES = 30;
/** A file may be from the future by this much (ms): clocks are set back. */
const CLOCK_TOLERANCE_MS = 60_000;

/**
 * A reader's own copy, on disk, of the documents that it serves. It answers if no other tier does, also after a restart.
 *
 * It is written twice a second in the background: removals first, then documents, and the confirmation last. A revocation
 * does not wait: its tombstone is on disk before `onPublished` or `given` returns.
 */
export class DiskCopy implements DurableCopy, AsyncDisposable {
  readonly health: CopyHealth;
  readonly #limits: CopyLimits;
  readonly #now: () => number;
  readonly #folder: CopyFolder;
  readonly #timer: NodeJS.Timeout;
  readonly #run = randomUUID();
  #feed: CopyFeed | undefined;
  #lineage: string | undefined;
  /** When Postgres named the lineage, in milliseconds; 0 if only the cache did. */
  #namedAt = 0;
  /** Id → the next write removes older versions than this one. */
  readonly #removals = new Map<string, number>();
  readonly #pending: LRUCache<string, { readonly document: Document; readonly read: ReadAt }>;
  /** Id → the version on disk, and when it was read. */
  readonly #stored = new LRUCache<string, { readonly version: number; readonly read?: ReadAt }>({
    max: 100_000,
  });
  /** The copy lacks documents that memory has. */
  #isIncomplete = false;
  #writing: Promise<unknown> | undefined;

  constructor({ folder, limits, logger, now = steadyNow, everyMs = 500 }: DiskCopyOptions) {
    this.#limits = limits;
    this.#now = now;
    this.#folder = new CopyFolder(folder, limits);
    this.health = new CopyHealth(logger);
    this.#pending = new LRUCache({
      maxSize: Math.ceil(limits.bytes * PENDING_AT_MOST),
      sizeCalculation: ({ document }) => document.size,
      dispose: (_entry, _id, reason) => {
        if (reason !== 'evict') return;
        // The disk is slower than the reads.
        this.health.failures.inc({ reason: 'overflow' });
        this.#isIncomplete = true;
      },
    });
    this.#timer = setInterval(() => void this.#write(), everyMs).unref();
  }

  feedFrom(feed: CopyFeed): void {
    this.#feed = feed;
  }

  follow(lineage: string, isSure: boolean): void {
    if (lineage !== this.#lineage) this.#forget();
    this.#lineage = lineage;
    this.#namedAt = isSure ? Math.floor(this.#now()) : 0;
  }

  async lineage(): Promise<string | undefined> {
    return (await this.health.run(() => this.#folder.owner()))?.lineage;
  }

  /** Removes what is older than the document that an answer is about to give, or everything if there is none. */
  onServed({ id }: { readonly id: string }, { document, ...read }: Served): void {
    if (!document) {
      this.#removeAbsent(id);
      return;
    }
    if (this.#stored.peek(id)?.version !== document.version) this.onPublished(id, document.version);
    if (read.epoch !== OUTDATED) this.#store(id, document, read);
  }

  /** Removes versions that are older than this one: a token's at once, others with the next write. */
  onPublished(id: string, version: number): void {
    const lineage = this.#lineage;
    if (lineage === undefined || !(version > 1) || !isDocumentId(id)) return;
    this.#removeOlder(id, version);
    if (isToken(id) && this.health.runNow(() => this.#folder.revoke(lineage, id, version)))
      this.#stored.set(id, { version });
  }

  #removeAbsent(id: string): void {
    if (this.#lineage === undefined) return;
    // No tombstone: every guess of a token would leave one, and fill the disk.
    const isRemoved = isToken(id) && this.health.runNow(() => this.#folder.removeNow(id));
    if (!isRemoved || this.#pending.has(id)) this.#removeOlder(id, Number.MAX_SAFE_INTEGER);
  }

  #store(id: string, document: Document, read: ReadAt): void {
    if (this.#lineage === undefined) return;
    const { version, read: before } = this.#stored.get(id) ?? {};
    const isStored = version === document.version && before?.epoch === read.epoch;
    if (this.#isOutdated(id, document.version)) this.#isIncomplete = true;
    // Some epochs have no confirmation: the file must be written again before it expires.
    else if (!isStored || read.at - before.at >= this.#limitOf(id) / TOUCHES)
      this.#pending.set(id, { document, read });
  }

  async read(name: DocumentName): Promise<TieredResult | undefined> {
    const lineage = this.#lineage;
    if (lineage === undefined) return undefined;
    const id = documentId(name);
    const found = await this.health.run(() => this.#folder.read(lineage, id));
    if (!found || lineage !== this.#lineage || this.#isOutdated(id, found.version)) return undefined;
    const document = decodeDocument(name, found.value);
    if (document?.version !== found.version) {
      this.health.failed(new DamagedFile(`a damaged document was removed: ${name.kind}`));
      void this.health.run(() => this.#folder.remove(id));
      return undefined;
    }
    const { knownAt } = found;
    const age = this.#now() - knownAt;
    if (age > this.#limitOf(id) || age < -CLOCK_TOLERANCE_MS) return undefined;
    const asOf = later(found.asOf, timeBy(found.stamps, id, document.sources));
    return { document, tier: 'disk', knownAt, asOf: boundedBy(knownAt, asOf) };
  }

  async *machines(): AsyncGenerator<readonly [regionId: number, machineIds: Iterable<string>]> {
    for (const regionId of (await this.health.run(() => this.#folder.regions())) ?? []) {
      const { document } = (await this.read({ kind: 'region', regionId })) ?? {};
      if (document) yield [regionId, document.keys()];
    }
  }

  async flush(): Promise<void> {
    await this.#writing;
    while ((await this.#write()) && (this.#pending.size > 0 || this.#isIncomplete));
  }

  /** Returns the newest version on disk, if that may be newer than this one and the disk answers in time; else 0. */
  async newest(id: string, version: number): Promise<number> {
    const lineage = this.#lineage;
    if (lineage === undefined || this.health.isSlow || this.#stored.peek(id)?.version === version) return 0;
    const reading = this.health.run(() => this.#folder.versionOf(lineage, id));
    const isInTime = await withTimeout(NEWEST_MS, reading);
    this.health.isSlow = !isInTime;
    return isInTime ? ((await reading) ?? 0) : 0;
  }

  #limitOf(id: string): number {
    return isToken(id) ? this.#limits.tokenStaleLimitMs : this.#limits.staleLimitMs;
  }

  #isOutdated(id: string, version: number): boolean {
    return Math.max(this.#removals.get(id) ?? 0, this.#pending.peek(id)?.document.version ?? 0) > version;
  }

  #removeOlder(id: string, version: number): void {
    this.#removals.set(id, Math.max(version, this.#removals.get(id) ?? 0));
    if ((this.#pending.peek(id)?.document.version ?? version) < version) this.#pending.delete(id);
    if ((this.#stored.peek(id)?.version ?? version) < version) this.#stored.delete(id);
  }

  #forget(): void {
    this.#removals.clear();
    this.#pending.clear();
    this.#stored.clear();
  }

  /** Returns true unless the write failed, or had no folder to write to. */
  #write(): Promise<unknown> {
    this.#writing ??= this.#writeNow()
      .catch((error: unknown) => this.health.failed(error))
      .finally(() => {
        this.#writing = undefined;
      });
    return this.#writing;
  }

  async #writeNow(): Promise<boolean> {
    const lineage = this.#lineage;
    if (lineage === undefined) return false;
    // Taken before the removals: this process knows every version that was published until then, and removes what is older.
    const confirmed = this.#feed?.confirmed();
    const claimed = await this.#folder.claim(lineage, this.#namedAt);
    if (claimed === 'begun') {
      this.#stored.clear();
      this.#isIncomplete = true;
    }
    if (claimed === 'refused') {
      this.#forget();
      return false;
    }
    await this.#removeAll(lineage);
    await this.#writeDocuments(lineage);
    if (lineage !== this.#lineage) return false;
    if (confirmed) {
      const stretch = this.#stretchOf(confirmed);
      await this.#folder.confirm({ lineage, stretch, at: confirmed.at, stamps: [...confirmed.stamps] });
    }
    await this.#tidyIfDue();
    this.health.succeeded();
    return true;
  }

  async #removeAll(lineage: string): Promise<void> {
    for (const [id, version] of [...this.#removals]) {
      await this.#folder.removeOlder(lineage, id, version);
      if (this.#removals.get(id) === version) this.#removals.delete(id);
    }
  }

  /** Writes the documents that wait, the oldest first. A removal does not wait for all of them. */
  async #writeDocuments(lineage: string): Promise<void> {
    this.#addMissing();
    for (const [id, entry] of [...this.#pending.entries()].reverse()) {
      await this.#removeAll(lineage);
      if (lineage !== this.#lineage) return;
      // A newer version was published since.
      if (this.#pending.peek(id) !== entry) continue;
      await this.#tidyIfDue();
      const { document, read } = entry;
      const { version } = document;
      const head = { lineage, id, version, stretch: this.#stretchOf(read), readAt: read.at, asOf: read.asOf };
      if (await this.#folder.write(head, encodeLoaded(id, document))) this.health.written.inc();
      if (this.#pending.peek(id) !== entry) continue;
      this.#stored.set(id, { version, read });
      this.#pending.delete(id);
    }
  }

  /** Adds the documents of memory that the copy lacks, as many as may wait. */
  #addMissing(): void {
    if (!this.#isIncomplete || this.#pending.size > 0) return;
    this.#isIncomplete = false;
    for (const { id, document, ...read } of this.#feed?.documents() ?? []) {
      if (this.#pending.calculatedSize + document.size <= this.#pending.maxSize)
        this.#store(id, document, read);
      else if (this.#pending.size > 0) this.#isIncomplete = true;
    }
  }

  async #tidyIfDue(): Promise<void> {
    if (this.#folder.isTidyDue(this.#now())) await this.#folder.tidy(this.#now());
  }

  #stretchOf({ epoch }: ReadAt): string {
    return `${this.#run}-${epoch}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer);
    await withTimeout(LAST_WRITE_MS, this.flush());
  }
}

export interface OpenedCopy {
  readonly copy: DurableCopy;
  readonly addMetrics: (registry: Registry) => void;
}

export function openDiskCopy({
  config,
  logger,
  closing,
}: Pick<ReaderContext, 'config' | 'logger' | 'closing'>): OpenedCopy | undefined {
  const { SNAPSHOT_DIR: folder } = settingsOf(config, DISK_COPY_SETTINGS);
  if (folder === undefined) return undefined;
  const { settings } = config;
  const limits = {
    bytes: bytesOfCopy(settings),
    staleLimitMs: settings.STALE_LIMIT * 1000,
    tokenStaleLimitMs: settings.TOKEN_STALE_LIMIT * 1000,
  };
  const copy = closing.use(new DiskCopy({ folder, limits, logger }));
  return { copy, addMetrics: (registry) => copy.health.addMetrics(registry) };
}
