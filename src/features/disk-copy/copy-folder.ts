/**
 * The files of a reader's disk copy. Each document is one file, which a rename replaces. Several processes may share the
 * folder. Every file has a checksum, and names the lineage that it belongs to.
 */

import { close, closeSync, fsync, openSync, unlinkSync, writeSync } from 'node:fs';
import { chmod, mkdir, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Head, Owner, StoredDocument } from './copy-files.ts';
import { DamagedFile, firstLine, isMissing, SealedFiles, sealed, unsealed } from './sealed-files.ts';

/** Raise it whenever another release would misread the files. Each format has its own folder. */
const COPY_FORMAT = 2;
const HOUR_MS = 3_600_000;
const ABANDONED_MS = 60_000;
const BLOCK = 4096;
/** Shares of the limit: beyond `MOST` nothing is written, and the oldest lists go until `FULL`. */
const MOST = 0.9;
const FULL = 0.8;

/** Where the copy lies. @param folder as SNAPSHOT_DIR names it */
export const copyFolder = (folder: string): string => join(folder, `fleetbook-copy-${COPY_FORMAT}`);

export interface CopyLimits {
  /** Of all files together. */
  readonly bytes: number;
  readonly staleLimitMs: number;
  readonly tokenStaleLimitMs: number;
}

/** True for the id of a document. Other text must not become a file name. */
export const isDocumentId = (id: string): boolean =>
  /^(?:providers|(?:region|columns|clusters):\d+|token:[0-9a-f]+)$/.test(id);

export class CopyFolder {
  readonly #parent: string;
  readonly #folder: string;
  readonly #files: SealedFiles;
  readonly #limits: CopyLimits;
  #isFirst = true;
  /** When PostgreSQL named the lineage, by the file. */
  #namedAt = 0;
  /** Bytes of all files at the last look, and those that this process has written since. */
  #seen = 0;
  #added = 0;

  /** @param folder as SNAPSHOT_DIR names it. Nothing is opened yet. */
  constructor(folder: string, limits: CopyLimits) {
    this.#parent = folder;
    this.#folder = copyFolder(folder);
    this.#files = new SealedFiles(this.#folder);
    this.#limits = limits;
  }

  /** The lineage of the documents here; undefined for an empty copy. */
  async owner(): Promise<Owner | undefined> {
    return this.#files.valueOf<Owner>('lineage');
  }

  /**
   * Takes the folder for a lineage. The lineage that PostgreSQL named last owns it: another one's files are removed.
   * @returns `begun` when the folder was empty until now, `refused` when a later lineage owns it
   */
  async claim(lineage: string, namedAt: number): Promise<'kept' | 'begun' | 'refused'> {
    if (this.#isFirst) await this.#removeOtherFormats();
    this.#isFirst = false;
    const text = (await this.#files.bytesOf('lineage'))?.toString();
    const owner = unsealed<Owner>(text);
    this.#namedAt = owner?.namedAt ?? 0;
    if (owner?.lineage === lineage) return 'kept';
    if (owner && namedAt <= owner.namedAt) return 'refused';
    if (text !== undefined) await rm(this.#folder, { recursive: true, force: true });
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    await chmod(this.#folder, 0o700);
    this.#namedAt = namedAt;
    await this.#files.replace('lineage', { lineage, namedAt });
    return 'begun';
  }

  /** Notes that PostgreSQL has named the owner again. */
  async renew(lineage: string, namedAt: number): Promise<void> {
    if (namedAt > this.#namedAt) await this.#files.replace('lineage', { lineage, namedAt });
  }

  /**
   * Undefined for a document that is not here, or not of this lineage, or older than a revocation.
   * @throws DamagedFile after removing it
   */
  async read(lineage: string, id: string): Promise<StoredDocument | undefined> {
    const file = await this.#files.bytesOf(fileOf(id));
    if (!file) return undefined;
    const line = firstLine(file);
    const head = unsealed<Head>(line);
    if (head?.id !== id) {
      await this.remove(id);
      throw new DamagedFile('a file of the disk copy is damaged, and was removed');
    }
    if (head.lineage !== lineage || (await this.#floorOf(lineage, id)) > head.version) return undefined;
    return {
      version: head.version,
      value: file.subarray(Buffer.byteLength(line)),
      knownAt: await this.#knownAt(head),
      asOf: head.asOf,
      stamps: await this.#stampsOf(head),
    };
  }

  /** The newest version in the copy or in a tombstone: 0 for none. */
  async versionOf(lineage: string, id: string): Promise<number> {
    const head = await this.#files.headOf<Head>(fileOf(id));
    return Math.max(head?.lineage === lineage ? head.version : 0, await this.#floorOf(lineage, id));
  }

  /** Writes a document, unless a newer version, or the same one read later, is here. */
  async write(head: Head, value: Buffer): Promise<void> {
    const name = fileOf(head.id);
    const before = await this.#files.headOf<Head>(name);
    if (before?.lineage === head.lineage) {
      if (before.version > head.version) return;
      if (before.version === head.version && before.readAt >= head.readAt) return;
    }
    this.#added += roomOf(value.length);
    await this.#files.replace(name, head, value);
  }

  /** Removes a version that is older than this one. */
  async removeOlder(lineage: string, id: string, version: number): Promise<void> {
    const head = await this.#files.headOf<Head>(fileOf(id));
    if (head?.lineage === lineage && head.version < version) await this.remove(id);
  }

  async remove(id: string): Promise<void> {
    await this.#files.remove(fileOf(id));
  }

  /**
   * Writes a tombstone before it returns: no older version of this token is ever read again, also if another process
   * writes one. It blocks for some microseconds. A disk that takes no tombstone loses the token's file instead.
   * @throws if both fail
   */
  revoke(lineage: string, id: string, version: number): void {
    try {
      const file = openSync(this.#files.path(tombstoneOf(id)), 'a', 0o600);
      try {
        writeSync(file, sealed({ lineage, version }));
      } catch (error) {
        closeSync(file);
        throw error;
      }
      // A loss of power must not undo it either. The flush ends in the background.
      fsync(file, () => close(file, () => {}));
    } catch {
      this.removeNow(id);
    }
  }

  /** As `remove`, before it returns. */
  removeNow(id: string): void {
    try {
      unlinkSync(this.#files.path(fileOf(id)));
    } catch (error) {
      if (!isMissing(error)) throw error;
    }
  }

  /** All documents of this stretch were true at this time, unless a newer version removed them. */
  async confirm(lineage: string, stretch: string, at: number): Promise<void> {
    await this.#files.replace(`confirmed-${stretch}`, { lineage, stretch, at });
  }

  /** All documents of this stretch cover these stamps (`loadFreshness`), unless a newer version removed them. */
  async writeStamps(lineage: string, stretch: string, stamps: ReadonlyMap<string, string>): Promise<void> {
    await this.#files.replace(`stamps-${stretch}`, { lineage, stretch, stamps: [...stamps] });
  }

  /** The ids of the regions whose lists are here. */
  async regions(): Promise<number[]> {
    const names = await readdir(this.#folder);
    return names.flatMap((name) => /^region-(\d+)$/.exec(name)?.[1] ?? []).map(Number);
  }

  hasRoom(bytes: number): boolean {
    return this.#seen + this.#added + roomOf(bytes) <= this.#limits.bytes * MOST;
  }

  /** Bytes that this process has written since the last `tidy`. */
  get added(): number {
    return this.#added;
  }

  /**
   * Removes what is far too old to be given. If the rest is near the limit, the lists go that were written longest ago:
   * without the list of providers or a token nothing is answered.
   */
  async tidy(now: number): Promise<{ readonly bytes: number; readonly documents: number }> {
    const lists: { name: string; bytes: number; at: number }[] = [];
    const added = this.#added;
    let documents = 0;
    let bytes = 0;
    for (const name of await readdir(this.#folder)) {
      const found = await stat(this.#files.path(name)).catch(() => undefined);
      if (!found) continue;
      if (await this.#isTooOld(name, found.mtimeMs, now)) {
        await this.#files.remove(name);
        continue;
      }
      bytes += roomOf(found.size);
      if (isDocument(name)) documents += 1;
      if (isList(name)) lists.push({ name, bytes: roomOf(found.size), at: found.mtimeMs });
    }
    if (bytes > this.#limits.bytes * FULL) {
      for (const list of lists.sort((a, b) => a.at - b.at)) {
        if (bytes <= this.#limits.bytes * FULL) break;
        await this.#files.remove(list.name);
        bytes -= list.bytes;
        documents -= 1;
      }
    }
    this.#seen = bytes;
    this.#added -= added;
    return { bytes, documents };
  }

  /** A document stays for an hour more than it may be given: a clock may be wrong, and a machine may sleep. */
  async #isTooOld(name: string, writtenAt: number, now: number): Promise<boolean> {
    const { staleLimitMs, tokenStaleLimitMs } = this.#limits;
    if (name.startsWith('tmp-')) return Date.now() - writtenAt > ABANDONED_MS;
    const isOfToken = /^(token|revoked)-/.test(name);
    const limitMs = HOUR_MS + (isOfToken ? tokenStaleLimitMs : Math.max(staleLimitMs, tokenStaleLimitMs));
    if (now - writtenAt <= limitMs) return false;
    if (!isDocument(name)) return /^(confirmed|revoked|stamps)-/.test(name);
    const head = await this.#files.headOf<Head>(name);
    return !head || now - (await this.#knownAt(head)) > limitMs;
  }

  async #knownAt({ lineage, stretch, readAt }: Head): Promise<number> {
    const confirmed = await this.#files.valueOf<{ lineage: string; stretch: string; at: number }>(
      `confirmed-${stretch}`,
    );
    const isOfIt = confirmed?.lineage === lineage && confirmed.stretch === stretch;
    return isOfIt ? Math.max(readAt, confirmed.at) : readAt;
  }

  async #stampsOf({ lineage, stretch }: Head): Promise<ReadonlyMap<string, string>> {
    const stored = await this.#files.valueOf<{
      lineage: string;
      stretch: string;
      stamps: [string, string][];
    }>(`stamps-${stretch}`);
    return new Map(stored?.lineage === lineage && stored.stretch === stretch ? stored.stamps : []);
  }

  /** No older version of a token may be given. A tombstone that is damaged refuses every version. */
  async #floorOf(lineage: string, id: string): Promise<number> {
    const text = isToken(id) ? (await this.#files.bytesOf(tombstoneOf(id)))?.toString() : undefined;
    if (text === undefined) return 0;
    const lines = text.split('\n');
    if (lines.length === 1 || lines.pop() !== '') return Number.POSITIVE_INFINITY;
    let floor = 0;
    for (const line of lines) {
      const revoked = unsealed<{ lineage: string; version: number }>(`${line}\n`);
      if (!revoked) return Number.POSITIVE_INFINITY;
      if (revoked.lineage === lineage) floor = Math.max(floor, revoked.version);
    }
    return floor;
  }

  /** A release that still writes another format begins its copy again. */
  async #removeOtherFormats(): Promise<void> {
    await mkdir(this.#parent, { recursive: true, mode: 0o700 });
    for (const name of await readdir(this.#parent)) {
      const path = join(this.#parent, name);
      if (/^fleetbook-copy-\d+$/.test(name) && path !== this.#folder)
        await rm(path, { recursive: true, force: true });
    }
  }
}

const isToken = (id: string): boolean => id.startsWith('token:');
const fileOf = (id: string): string => id.replace(':', '-');
const tombstoneOf = (id: string): string => id.replace('token:', 'revoked-');
const isList = (name: string): boolean => /^(region|columns|clusters)-/.test(name);
const isDocument = (name: string): boolean =>
  isList(name) || name.startsWith('token-') || name === 'providers';
const roomOf = (bytes: number): number => Math.ceil(bytes / BLOCK) * BLOCK;
