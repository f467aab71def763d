/**
 * A file with the documents of memory. A reader that starts while the cache and Postgres are away answers from it.
 *
 *     fleetbook dump 1 FB2\n
 *     {"lineage": …}\n
 *     {"id": …, "at": …, "asOf": …, "length": …}\n <value as in Redis>    for each document
 *     <CRC-32 of all before it, 8 hex digits>
 *
 * A rename replaces the file as a whole. It holds tokens as memory does, by their hashes.
 */
import { mkdir, open, readFile, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { crc32 } from 'node:zlib';
import type { Logger } from 'pino';
import { withTimeout } from '../../domain/clock.ts';
import { messageOf } from '../../domain/errors.ts';
import { Slice } from '../../domain/event-loop.ts';
import { encodeLoaded, FORMAT } from '../document/format.ts';
import { decodeForMemory } from '../document/token-document.ts';
import type { Documents, LoadedDump } from './documents.ts';
import type { DumpContent, DumpedDocument } from './memory.ts';

export interface DumpOptions {
  /** A folder of this process alone. It is created if missing. */
  readonly folder: string;
  readonly documents: Pick<Documents, 'dump' | 'insertDump'>;
  readonly logger: Logger;
  /** Bytes of the file, those of documents in memory. It leaves the last documents out if many are read while it is written. */
  readonly limit: number;
  readonly everyMs?: number;
}

const EVERY_MS = 5000;
/** Ratio of the pause to the preceding write: writes take at most a twentieth of the time. */
const PAUSE_FACTOR = 19;
/** Unchanged documents that were confirmed since are written again after this time (ms). */
const CONFIRM_EVERY_MS = 60_000;
const LAST_WRITE_MS = 2000;
/** Bytes of one write. */
const WRITTEN_AT_ONCE = 64_000;
const MAGIC = `fleetbook dump 1 ${FORMAT}\n`;
const CHECKSUM_LENGTH = 8;

export class Dump implements AsyncDisposable {
  /** Settles when the file of an earlier process was read. Nothing is written before. */
  readonly loaded: Promise<void>;
  /** True from a failed write to the next good one. */
  isFailing = false;
  readonly #options: DumpOptions;
  readonly #path: string;
  readonly #closing = new AbortController();
  #written: string | undefined;
  #writing: Promise<void> | undefined;

  constructor(options: DumpOptions) {
    this.#options = options;
    this.#path = join(options.folder, 'documents.dump');
    this.loaded = this.#load();
    void this.#writeNowAndThen();
  }

  async #load(): Promise<void> {
    const { documents, logger, limit } = this.#options;
    try {
      documents.insertDump(await readDump(this.#path, limit));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT')
        logger.warn({ why: messageOf(error) }, 'the dump in SNAPSHOT_DIR is ignored');
    }
  }

  async #writeNowAndThen(): Promise<void> {
    const { everyMs = EVERY_MS } = this.#options;
    const { signal } = this.#closing;
    await this.loaded;
    let tookMs = 0;
    while (!signal.aborted) {
      await sleep(Math.max(everyMs, tookMs * PAUSE_FACTOR), undefined, { signal, ref: false }).catch(
        () => {},
      );
      const began = performance.now();
      if (!signal.aborted) await this.write();
      tookMs = performance.now() - began;
    }
  }

  /** Writes the documents of memory, if they have changed. It never rejects. */
  write(): Promise<void> {
    this.#writing ??= this.#write().finally(() => {
      this.#writing = undefined;
    });
    return this.#writing;
  }

  async #write(): Promise<void> {
    const { documents, folder, logger, limit } = this.#options;
    const seen = documents.dump();
    if (!seen) return;
    const written = await stateOf(seen);
    if (written === this.#written) return;
    // A change since then is part of this file or of the next one.
    const content = documents.dump() ?? seen;
    try {
      await mkdir(folder, { recursive: true, mode: 0o700 });
      await writeDump(this.#path, content, limit);
      this.#written = written;
      if (this.isFailing) logger.info('the dump in SNAPSHOT_DIR is written again');
      this.isFailing = false;
    } catch (error) {
      const message = 'the dump in SNAPSHOT_DIR cannot be written; serving goes on without it';
      if (!this.isFailing) logger.warn({ why: messageOf(error) }, message);
      this.isFailing = true;
    }
  }

  /** Writes once more. A hanging disk delays the stop for two seconds. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort();
    await withTimeout(
      LAST_WRITE_MS,
      this.loaded.then(() => this.#writing).then(() => this.write()),
    );
  }
}

/** Returns a text that changes with each document and version, and now and then with the confirmations. */
async function stateOf({ lineage, documents }: DumpContent): Promise<string> {
  let sum = 0;
  let at = 0;
  const slice = new Slice();
  for (const each of documents) {
    sum += crc32(`${each.id} ${each.document.version}`);
    at = Math.max(at, each.at);
    if (slice.isOver) await slice.next();
  }
  return `${lineage} ${sum} ${Math.floor(at / CONFIRM_EVERY_MS)}`;
}

/** @throws an error that says why the file cannot be used, or that of the disk */
async function readDump(path: string, limit: number): Promise<LoadedDump> {
  if ((await stat(path)).size > 2 * limit) throw new Error('it is larger than the memory');
  const file = await readFile(path);
  if (!file.toString('latin1', 0, MAGIC.length).startsWith(MAGIC)) throw new Error('it has another format');
  const end = file.length - CHECKSUM_LENGTH;
  if (file.toString('latin1', end) !== checksum(crc32(file.subarray(0, end))))
    throw new Error('it is damaged');
  let offset = MAGIC.length;
  const takeLine = () => {
    const from = offset;
    offset = file.indexOf('\n', from) + 1;
    return JSON.parse(file.toString('utf8', from, offset));
  };
  const { lineage } = takeLine();
  const documents: DumpedDocument[] = [];
  const slice = new Slice();
  while (offset < end) {
    const { id, at, asOf, length } = takeLine();
    const document = decodeForMemory(id, file.subarray(offset, offset + length));
    if (!document) throw new Error('it is damaged');
    // Otherwise each document would keep the whole file in memory.
    document.detach();
    documents.push({ id, document, at, asOf });
    offset += length;
    if (slice.isOver) await slice.next();
  }
  return { lineage, documents };
}

/** Replaces the file. Only this user may read it. @throws the error of the disk */
async function writeDump(path: string, { lineage, documents }: DumpContent, limit: number): Promise<void> {
  const temporary = `${path}.new`;
  await rm(temporary, { force: true });
  const file = await open(temporary, 'wx', 0o600);
  try {
    let crc = 0;
    let size = 0;
    let parts: Buffer[] = [Buffer.from(`${MAGIC}${JSON.stringify({ lineage })}\n`)];
    const flush = async () => {
      const bytes = Buffer.concat(parts);
      parts = [];
      crc = crc32(bytes, crc);
      size += bytes.length;
      await file.appendFile(bytes);
    };
    let waiting = 0;
    const slice = new Slice();
    for (const { id, document, at, asOf } of documents) {
      if (size + waiting + document.size > limit) break;
      const value = encodeLoaded(id, document);
      parts.push(Buffer.from(`${JSON.stringify({ id, at, asOf, length: value.length })}\n`), value);
      waiting += value.length;
      if (waiting >= WRITTEN_AT_ONCE) {
        waiting = 0;
        await flush();
      }
      if (slice.isOver) await slice.next();
    }
    await flush();
    await file.appendFile(checksum(crc));
    await file.sync();
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => {});
    throw error;
  } finally {
    await file.close();
  }
}

const checksum = (crc: number): string => crc.toString(16).padStart(CHECKSUM_LENGTH, '0');
