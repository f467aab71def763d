import { randomUUID } from 'node:crypto';
import type { Logger } from 'pino';
import { withTimeout } from '../../domain/timeout.ts';
import type { Document } from '../document/document.ts';
import { decodeDocument } from '../document/format.ts';
import { type DocumentName, documentId } from '../document/keys.ts';
import { CopyClient, type NoAnswer } from './copy-client.ts';
import type { Batch, CopyLimits } from './messages.ts';
import { PendingDocuments, type ReadAt } from './pending-documents.ts';
import { PendingFloors } from './pending-floors.ts';

export interface DiskCopyOptions {
  /** As SNAPSHOT_DIR names it; made where it is not there. Several processes may share it. */
  readonly folder: string;
  readonly limits: CopyLimits;
  readonly logger: Logger;
  readonly now?: () => number;
  /** Milliseconds between two writes. */
  readonly everyMs?: number;
  /** Milliseconds that an answer waits until what is older is put out; `PUT_OUT_MS` unless given. */
  readonly putOutMs?: typeof PUT_OUT_MS;
}

/** What the copy is fed from. */
export interface CopyFeed {
  /** The epoch in which memory is known to be what the cache has, and since when; undefined while no messages arrive. */
  confirmed(): ReadAt | undefined;
  /** Everything that memory holds and may be kept. */
  documents(): Iterable<{ readonly id: string; readonly document: Document } & ReadAt>;
  stamps(): Iterable<readonly [id: string, stamp: string]>;
}

/** What is counted, for the metrics. */
export interface DiskCopyCounts {
  bytes: number;
  documents: number;
  written: number;
  readonly failures: Map<NoAnswer | 'overflow', number>;
}

/** Milliseconds that an answer waits until what is older is put out. A disk that takes longer is not waited for. */
const PUT_OUT_MS = { first: 1000, later: 250 };
/** The alternative is no answer. */
const READ_MS = 2000;
const WRITE_MS = 10_000;
const PRUNE_EVERY_MS = 60_000;
/** Bytes of one write, and of what may wait to be written. */
const CHUNK = 1_000_000;
const PENDING_AT_MOST = 32_000_000;
/** A document that is read again and again is said to be known at so many times within its limit. */
const TOUCHES = 60;
/** Of what the copy has: no epoch of a subscription. */
const OF_THE_COPY = { epoch: -1, at: 0 };

/**
 * A reader's own copy, on disk, of the documents that it serves: what it starts with when nothing else answers.
 *
 * A newer version puts out the older one before it is given; its content follows in the background. So the copy may
 * lack what was given a moment ago, and never has something older in its place.
 */
export class DiskCopy implements AsyncDisposable {
  readonly counts: DiskCopyCounts = { bytes: 0, documents: 0, written: 0, failures: new Map() };
  readonly #limits: CopyLimits;
  readonly #logger: Logger;
  readonly #now: () => number;
  readonly #client: CopyClient;
  readonly #floors: PendingFloors;
  readonly #timer: NodeJS.Timeout;
  /** Tells this process' epochs from those of others. */
  readonly #run = randomUUID();
  readonly #pending = new PendingDocuments(PENDING_AT_MOST);
  readonly #stamps = new Map<string, string>();
  /** What memory holds, while it is handed over anew. */
  #again: Iterator<{ readonly id: string; readonly document: Document } & ReadAt> | undefined;
  #isIncomplete = false;
  #feed: CopyFeed | undefined;
  #lineage: string | undefined;
  /** When PostgreSQL named it, in milliseconds; 0 where it did not. */
  #lineageAt = 0;
  #writing: Promise<void> | undefined;
  #prunedAt = Number.NEGATIVE_INFINITY;
  #isTold = false;

  constructor(options: DiskCopyOptions) {
    this.#limits = options.limits;
    this.#logger = options.logger;
    this.#now = options.now ?? Date.now;
    this.#client = new CopyClient(
      { folder: options.folder, limits: options.limits },
      {
        onFailure: (reason, message) => this.#failed(reason, message),
        onDropped: () => this.#keepAll(),
      },
    );
    this.#floors = new PendingFloors(
      (floors) => this.#client.ask('supersede', this.#batch({ floors }), WRITE_MS),
      options.putOutMs ?? PUT_OUT_MS,
    );
    this.#timer = setInterval(() => void (this.#writing ?? this.#write()), options.everyMs ?? 1000);
    this.#timer.unref();
  }

  /** Says where documents come from that the copy has lost, and until when they are known. */
  feedFrom(feed: CopyFeed): void {
    this.#feed = feed;
  }

  /** Documents are of this lineage from now on. @param isSure PostgreSQL has named it */
  follow(lineage: string, isSure: boolean): void {
    if (lineage !== this.#lineage) {
      this.#pending.clear();
      this.#floors.clear();
      this.#stamps.clear();
      this.#again = undefined;
    }
    this.#lineage = lineage;
    this.#lineageAt = isSure ? Math.floor(this.#now()) : 0;
  }

  /** The lineage of what is kept, for a reader that nobody else tells it. */
  async lineage(): Promise<string | undefined> {
    const outcome = await this.#client.ask('lineage', undefined, READ_MS);
    return 'answer' in outcome ? outcome.answer : undefined;
  }

  /** A newer version was published. */
  heard(id: string, version: number): void {
    if (this.#lineage === undefined) return;
    this.#pending.dropOlder(id, version);
    this.#floors.add(id, version);
  }

  /**
   * Puts out what is older than a version that is about to be given.
   * @returns the newest version that was ever given or heard of, as far as the copy knows and answers in time; else 0
   */
  supersede(id: string, document: Document | undefined): Promise<number> | 0 {
    if (this.#lineage === undefined || (document && this.#pending.isKept(id, document.version))) return 0;
    // There is no such document: whatever is kept of it is given no more.
    const version = document?.version ?? Number.MAX_SAFE_INTEGER;
    this.heard(id, version);
    return this.#floors.sent(id).then(({ newest, held }) => {
      if (held === version) this.#pending.setKept(id, version, OF_THE_COPY);
      return newest;
    });
  }

  /** Hands a document over, to be written in a moment; or says that one is still what it was. */
  keep(id: string, document: Document, read: ReadAt): void {
    if (this.#lineage === undefined) return;
    if (this.#pending.add(id, document, read, this.#limitOf(id) / TOUCHES)) return;
    // The disk is slower than what is read: memory hands it over when there is room again.
    this.#count('overflow');
    this.#isIncomplete = true;
  }

  keepStamp(id: string, stamp: string): void {
    this.#stamps.set(id, stamp);
  }

  /** The document, if what is kept is young enough and nothing newer was ever given or heard of. */
  async read(
    name: DocumentName,
  ): Promise<{ readonly document: Document; readonly knownAt: number } | undefined> {
    const lineage = this.#lineage;
    if (lineage === undefined) return undefined;
    const id = documentId(name);
    const now = this.#now();
    const outcome = await this.#client.ask(
      'read',
      { lineage, id, since: now - this.#limitOf(id), now },
      READ_MS,
    );
    if (!('answer' in outcome) || !outcome.answer || lineage !== this.#lineage) return undefined;
    const { value, knownAt, version } = outcome.answer;
    if (this.#floors.get(id) > version) return undefined;
    const document = decoded(name, value);
    if (document?.version !== version) {
      this.#failed('damaged', `a damaged document is removed: ${name.kind}`);
      this.#pending.forgetKept(id);
      void this.#client.ask('remove', id, WRITE_MS);
      return undefined;
    }
    this.#pending.setKept(id, version, OF_THE_COPY);
    return { document, knownAt };
  }

  /** Undefined where no list that is kept has this machine. */
  async regionOfMachine(machineId: number): Promise<number | undefined> {
    if (this.#lineage === undefined) return undefined;
    const outcome = await this.#client.ask('region', { lineage: this.#lineage, machineId }, READ_MS);
    return 'answer' in outcome ? outcome.answer : undefined;
  }

  /** When sources were last read, see `loadFreshness`. */
  async stamps(): Promise<readonly (readonly [id: string, stamp: string])[]> {
    if (this.#lineage === undefined) return [];
    const outcome = await this.#client.ask('stamps', this.#lineage, READ_MS);
    return 'answer' in outcome ? outcome.answer : [];
  }

  /** Writes everything that waits now. */
  async flush(): Promise<void> {
    await this.#writing;
    await (this.#writing ?? this.#write());
  }

  #write(): Promise<void> {
    this.#writing = this.#flush().finally(() => {
      this.#writing = undefined;
    });
    return this.#writing;
  }

  async #flush(): Promise<void> {
    if (this.#lineage === undefined) return;
    const now = this.#now();
    // Before the floors: whatever was published until then has been heard of, and is among them.
    const confirmed = this.#feed?.confirmed();
    if (!(await this.#floors.send())) return;
    let isFirst = true;
    while (isFirst || this.#pending.size > 0) {
      this.#refill();
      const documents = this.#take();
      const stamps = isFirst ? [...this.#stamps] : [];
      const batch = this.#batch({
        documents,
        stamps,
        confirmed: isFirst && confirmed ? { run: this.#run, ...confirmed } : undefined,
      });
      const outcome = await this.#client.ask('write', batch, WRITE_MS);
      if (!('answer' in outcome)) {
        this.#isIncomplete ||= documents.length > 0;
        return;
      }
      for (const [id, stamp] of stamps) if (this.#stamps.get(id) === stamp) this.#stamps.delete(id);
      this.counts.written += documents.length;
      isFirst = false;
    }
    this.#succeeded();
    if (now - this.#prunedAt < PRUNE_EVERY_MS) return;
    this.#prunedAt = now;
    const sizes = await this.#client.ask('prune', now, WRITE_MS);
    if ('answer' in sizes) Object.assign(this.counts, sizes.answer);
  }

  #take(): Batch['documents'] {
    return this.#pending
      .take(CHUNK)
      .map(({ at, ...document }) => ({ ...document, run: this.#run, readAt: Math.floor(at) }));
  }

  #batch(parts: Partial<Batch>): Batch {
    return {
      lineage: this.#lineage ?? '',
      lineageAt: this.#lineageAt,
      now: this.#now(),
      floors: [],
      documents: [],
      stamps: [],
      confirmed: undefined,
      ...parts,
    };
  }

  /** The copy is empty, or lacks something: memory is handed over once more, bit by bit. */
  #keepAll(): void {
    this.#pending.forgetKept();
    this.#isIncomplete = true;
    for (const [id, stamp] of this.#feed?.stamps() ?? []) this.#stamps.set(id, stamp);
  }

  #refill(): void {
    if (this.#isIncomplete && this.#pending.size === 0) {
      this.#isIncomplete = false;
      this.#pending.forgetKept();
      this.#again = this.#feed?.documents()[Symbol.iterator]();
    }
    while (this.#again && this.#pending.bytes < CHUNK) {
      const next = this.#again.next();
      if (next.done) this.#again = undefined;
      else this.keep(next.value.id, next.value.document, next.value);
    }
  }

  #limitOf(id: string): number {
    return id.startsWith('token:') ? this.#limits.tokenStaleLimitMs : this.#limits.staleLimitMs;
  }

  #failed(reason: NoAnswer, message: string): void {
    this.#count(reason);
    if (this.#isTold) return;
    this.#isTold = true;
    this.#logger.warn(
      { reason, why: message },
      'the copy in SNAPSHOT_DIR cannot be used; serving goes on without it',
    );
  }

  #succeeded(): void {
    if (this.#isTold) this.#logger.info('the copy in SNAPSHOT_DIR is written again');
    this.#isTold = false;
  }

  #count(reason: NoAnswer | 'overflow'): void {
    this.counts.failures.set(reason, (this.counts.failures.get(reason) ?? 0) + 1);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer);
    await withTimeout(2000, this.flush());
    await this.#client.ask('close', undefined, 1000);
    await this.#client.end();
  }
}

function decoded(name: DocumentName, value: Uint8Array): Document | undefined {
  return decodeDocument(name, Buffer.from(value.buffer, value.byteOffset, value.length));
}
