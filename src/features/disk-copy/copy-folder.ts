/**
 * The files of a disk copy: one for each document, which a rename replaces. Several processes may share the folder. Every
 * file has a checksum and names its lineage.
 */
import { randomUUID } from 'node:crypto';
import { close, fsync, openSync, rmSync, writeSync } from 'node:fs';
import { chmod, mkdir, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { DamagedFile, decodeLine, encodeLine, readFileOf, readIfExists, replaceFile } from './files.ts';

/** Raise it if another release would misread the files. Each format has its own folder. */
const COPY_FORMAT = 2;
const HOUR_MS = 3_600_000;
const ABANDONED_MS = 60_000;
const TIDY_EVERY_MS = 300_000;
const BLOCK = 4096;
/** Shares of the limit. Above `MOST` nothing is written. The oldest lists are removed until `FULL`. */
const MOST = 0.9;
const FULL = 0.8;
/** The share that is written before the next `tidy`: other processes write to the folder as well. */
const UNMEASURED = 0.03;

export const copyFolder = (folder: string): string => join(folder, `fleetbook-copy-${COPY_FORMAT}`);

export interface CopyLimits {
  readonly bytes: number;
  readonly staleLimitMs: number;
  readonly tokenStaleLimitMs: number;
}

interface Head {
  readonly lineage: string;
  readonly id: string;
  readonly version: number;
  /** An epoch of one process. A confirmation holds for all documents that were read in it. */
  readonly stretch: string;
  readonly readAt: number;
  /** The `Fleetbook-As-Of` of the document when it was read. */
  readonly asOf?: string | undefined;
}

/** Everything of a stretch was true at this time, and covers these stamps (`loadFreshness`). */
interface Confirmation {
  readonly lineage: string;
  readonly stretch: string;
  readonly at: number;
  readonly stamps?: readonly (readonly [id: string, stamp: string])[];
}

/** The lineage of the folder, and when Postgres named it; 0 if only the cache did. */
interface Owner {
  readonly lineage: string;
  readonly namedAt: number;
  /** A new one each time the folder begins empty. */
  readonly id: string;
}

/** Returns true for the id of a document. Other text must not become a file name. */
export const isDocumentId = (id: string): boolean =>
  /^(?:providers|(?:region|columns|clusters|price-book):\d+|token:[0-9a-f]+)$/.test(id);

export const isToken = (id: string): boolean => id.startsWith('token:');

export class CopyFolder {
  readonly #parent: string;
  readonly #folder: string;
  readonly #limits: CopyLimits;
  #isFirst = true;
  #ownerId: string | undefined;
  /** Bytes of all files at the last `tidy`, and bytes that this process has written since. */
  #measured = 0;
  #written = 0;
  #tidiedAt = Number.NEGATIVE_INFINITY;

  /** @param folder as SNAPSHOT_DIR names it. Nothing is opened yet. */
  constructor(folder: string, limits: CopyLimits) {
    this.#parent = folder;
    this.#folder = copyFolder(folder);
    this.#limits = limits;
  }

  async owner(): Promise<Owner | undefined> {
    return (await readFileOf<Owner>(this.#path('lineage')))?.head;
  }

  /**
   * Takes the folder for a lineage. The lineage that Postgres named last owns it: files of another one are removed.
   * @returns `begun` if a process has emptied the folder since the last claim, `refused` if a later lineage owns it
   */
  async claim(lineage: string, namedAt: number): Promise<'owned' | 'begun' | 'refused'> {
    if (this.#isFirst) await this.#removeOtherFormats();
    this.#isFirst = false;
    const file = await readFileOf<Owner>(this.#path('lineage'));
    const owner = file?.head;
    const isOwned = owner?.lineage === lineage;
    if (owner && !isOwned && namedAt <= owner.namedAt) return 'refused';
    const id = isOwned ? owner.id : randomUUID();
    const isBegun = !isOwned || id !== (this.#ownerId ?? id);
    this.#ownerId = id;
    if (!isOwned || namedAt > owner.namedAt) {
      if (file && !isOwned) await rm(this.#folder, { recursive: true, force: true });
      await mkdir(this.#folder, { recursive: true, mode: 0o700 });
      await chmod(this.#folder, 0o700);
      await replaceFile(this.#path('lineage'), { lineage, namedAt, id } satisfies Owner);
    }
    return isBegun ? 'begun' : 'owned';
  }

  /**
   * Returns a document in the form of the cache, and when it was last known to be true. Undefined if it is not here, of
   * another lineage, or older than a revocation.
   * @throws DamagedFile after removing it
   */
  async read(lineage: string, id: string) {
    const file = await readFileOf<Head>(this.#path(fileOf(id)));
    if (!file) return undefined;
    const { head, rest: value } = file;
    if (head?.id !== id) {
      await this.remove(id);
      throw new DamagedFile('a file of the disk copy is damaged, and was removed');
    }
    const { version, asOf } = head;
    if (head.lineage !== lineage || (await this.#floorOf(lineage, id)) > version) return undefined;
    return { version, value, asOf, ...(await this.#confirmed(head)) };
  }

  /** Returns the newest version in the copy or in a tombstone; 0 for none. */
  async versionOf(lineage: string, id: string): Promise<number> {
    const head = await this.#headOf(lineage, id);
    return Math.max(head?.version ?? 0, await this.#floorOf(lineage, id));
  }

  /** Writes a document, unless a newer version, or the same one read later, is here. Returns false if there is no room. */
  async write(head: Head, value: Buffer): Promise<boolean> {
    const bytes = roomOf(value.length);
    if (this.#measured + this.#written + bytes > this.#limits.bytes * MOST) return false;
    const before = await this.#headOf(head.lineage, head.id);
    if (before && before.version > head.version) return true;
    if (before?.version === head.version && before.readAt >= head.readAt) return true;
    this.#written += bytes;
    await replaceFile(this.#path(fileOf(head.id)), head, value);
    return true;
  }

  async removeOlder(lineage: string, id: string, version: number): Promise<void> {
    const head = await this.#headOf(lineage, id);
    if (head && head.version < version) await this.remove(id);
  }

  async remove(id: string): Promise<void> {
    await rm(this.#path(fileOf(id)), { force: true });
  }

  /**
   * Writes a tombstone before it returns: no older version of this token is ever read again, even if another process
   * writes one later. If the disk takes no tombstone, the token's file is removed instead.
   * @throws if both fail
   */
  revoke(lineage: string, id: string, version: number): void {
    try {
      const file = openSync(this.#path(tombstoneOf(id)), 'a', 0o600);
      try {
        writeSync(file, encodeLine({ lineage, version }));
      } finally {
        // A loss of power must not undo it either. The flush ends in the background.
        fsync(file, () => close(file, () => {}));
      }
    } catch {
      this.removeNow(id);
    }
  }

  removeNow(id: string): void {
    rmSync(this.#path(fileOf(id)), { force: true });
  }

  async confirm(confirmation: Confirmation): Promise<void> {
    await replaceFile(this.#path(`confirmed-${confirmation.stretch}`), confirmation);
  }

  async regions(): Promise<number[]> {
    const names = await readdir(this.#folder);
    return names.flatMap((name) => /^region-(\d+)$/.exec(name)?.[1] ?? []).map(Number);
  }

  isTidyDue(now: number): boolean {
    return this.#written > this.#limits.bytes * UNMEASURED || now - this.#tidiedAt > TIDY_EVERY_MS;
  }

  /**
   * Measures the folder, and removes what is too old to be served. Near the limit it removes the lists that were written
   * first. The list of providers and tokens stay: without them a reader answers nothing.
   */
  async tidy(now: number): Promise<void> {
    this.#tidiedAt = now;
    const files: { name: string; size: number; at: number }[] = [];
    for (const name of await readdir(this.#folder)) {
      const found = await stat(this.#path(name)).catch(() => undefined);
      if (!found) continue;
      if (await this.#isTooOld(name, found.mtimeMs, now)) await rm(this.#path(name), { force: true });
      else files.push({ name, size: roomOf(found.size), at: found.mtimeMs });
    }
    let bytes = files.reduce((sum, { size }) => sum + size, 0);
    for (const { name, size } of files.sort((a, b) => a.at - b.at)) {
      if (bytes <= this.#limits.bytes * FULL) break;
      if (!isList(name)) continue;
      await rm(this.#path(name), { force: true });
      bytes -= size;
    }
    this.#measured = bytes;
    this.#written = 0;
  }

  #path(name: string): string {
    return join(this.#folder, name);
  }

  async #headOf(lineage: string, id: string): Promise<Head | undefined> {
    const head = (await readFileOf<Head>(this.#path(fileOf(id))))?.head;
    return head?.lineage === lineage ? head : undefined;
  }

  /** A document stays an hour longer than it may be served: a clock may be wrong, and a machine may sleep. */
  async #isTooOld(name: string, writtenAt: number, now: number): Promise<boolean> {
    const { staleLimitMs, tokenStaleLimitMs } = this.#limits;
    if (name.startsWith('tmp-')) return Date.now() - writtenAt > ABANDONED_MS;
    const isOfToken = /^(token|revoked)-/.test(name);
    const limitMs = HOUR_MS + (isOfToken ? tokenStaleLimitMs : Math.max(staleLimitMs, tokenStaleLimitMs));
    if (now - writtenAt <= limitMs || name === 'lineage') return false;
    const head = (await readFileOf<Head | Confirmation>(this.#path(name)))?.head;
    return !head || !('readAt' in head) || now - (await this.#confirmed(head)).knownAt > limitMs;
  }

  /** Returns until when a document was known to be true, and the stamps that its stretch has confirmed. */
  async #confirmed({ lineage, stretch, readAt }: Head) {
    const found = (await readFileOf<Confirmation>(this.#path(`confirmed-${stretch}`)))?.head;
    const isOfStretch = found?.lineage === lineage && found.stretch === stretch;
    const { at, stamps } = isOfStretch ? found : { at: readAt };
    return { knownAt: Math.max(readAt, at), stamps: new Map(stamps) };
  }

  /** Returns the oldest version of a token that may be served. A damaged tombstone refuses every version. */
  async #floorOf(lineage: string, id: string): Promise<number> {
    const file = isToken(id) ? await readIfExists(this.#path(tombstoneOf(id))) : undefined;
    if (!file) return 0;
    const floors = String(file)
      .split(/(?<=\n)/)
      .map((line) => decodeLine<{ lineage: string; version: number }>(line))
      .map((each = { lineage, version: Number.POSITIVE_INFINITY }) =>
        each.lineage === lineage ? each.version : 0,
      );
    return Math.max(...floors);
  }

  async #removeOtherFormats(): Promise<void> {
    await mkdir(this.#parent, { recursive: true, mode: 0o700 });
    for (const name of await readdir(this.#parent)) {
      const path = join(this.#parent, name);
      if (/^fleetbook-copy-\d+$/.test(name) && path !== this.#folder)
        await rm(path, { recursive: true, force: true });
    }
  }
}

const fileOf = (id: string): string => id.replace(':', '-');
const tombstoneOf = (id: string): string => id.replace('token:', 'revoked-');
const isList = (name: string): boolean => /^(region|columns|clusters|price-book)-/.test(name);
const roomOf = (bytes: number): number => Math.ceil(bytes / BLOCK) * BLOCK;
