/**
 * The file of a reader's disk copy: an SQLite database that several processes may share. What the file says is used
 * only where a checksum proves it, row by row. Everything here blocks: it runs in a thread of its own.
 */
import { chmodSync, closeSync, mkdirSync, openSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { decodeDocument } from '../document/format.ts';
import { crcOf, SCHEMA, Statements } from './copy-schema.ts';
import { nameOf } from './document-names.ts';
import { DamagedCopy } from './failures.ts';
import { copyFolder, removeOtherFormats } from './formats.ts';
import type { Batch, Confirmed, CopyLimits, KnownVersions, StoredDocument } from './messages.ts';

const PAGE = 4096;
/** Shares of the limit: pages that SQLite may use at most, and those beyond which rows make room for newer ones. */
const MOST = 0.8;
const FULL = 0.7;
/** Milliseconds that a lock of another process is waited for. */
const LOCKED_MS = 500;
/**
 * Milliseconds for which an id without content remembers the version that put it out, and for which content stays that
 * is too old: a clock that is put forward, or a machine that slept, may still have it confirmed.
 */
const KEPT_MS = 3_600_000;
/** A confirmation from further ahead (ms) was written while the clock was wrong. */
const CLOCK_TOLERANCE_MS = 60_000;

export interface CopySizes {
  /** Bytes of the file's pages that hold something. */
  readonly bytes: number;
  readonly documents: number;
}

export class CopyFile {
  readonly #folder: string;
  readonly #parent: string;
  readonly #limits: CopyLimits;
  #database: DatabaseSync | undefined;
  #statements: Statements | undefined;
  /** The file that is open. */
  #name: string | undefined;
  #begun = false;

  /** @param folder as SNAPSHOT_DIR names it. Nothing is opened yet. */
  constructor(folder: string, limits: CopyLimits) {
    this.#folder = copyFolder(folder);
    this.#parent = folder;
    this.#limits = limits;
  }

  /** True once after another file than before was opened, whoever began it: what a reader has is to be kept again. */
  get wasBegun(): boolean {
    const begun = this.#begun;
    this.#begun = false;
    return begun;
  }

  /**
   * Writes in one transaction. What raises a version below it is put out before anything is added.
   * @returns false when what is kept here is of another lineage, which is the later one: nothing was written
   * @throws whatever SQLite and the file system do; nothing of the batch was written then
   */
  write(batch: Batch): boolean {
    const statements = this.#open();
    const { lineage } = batch;
    // Who hears of a revocation expects it to outlive a loss of power; all else only the end of a process.
    const isUrgent = batch.floors.some(
      ([id, version]) => id.startsWith('token:') && (statements.document(id)?.floor ?? version) < version,
    );
    return this.#inTransaction(isUrgent, () => {
      const stored = statements.lineage();
      if (stored?.id !== lineage) {
        // Whoever heard last of the lineage is right: another process may still follow the former one.
        if (stored && batch.lineageAt <= stored.at) return false;
        statements.forget();
      }
      if (stored?.id !== lineage || batch.lineageAt > stored.at)
        statements.setLineage(lineage, batch.lineageAt, crcOf(lineage, batch.lineageAt));
      for (const [id, version] of batch.floors) this.#putOut(lineage, id, version, batch.now);
      for (const document of batch.documents) this.#keep(lineage, document);
      for (const [id, stamp] of batch.stamps) statements.setStamp(id, stamp, crcOf(lineage, id, stamp));
      if (batch.confirmed) this.#confirm(lineage, batch.confirmed);
      return true;
    });
  }

  versions(lineage: string, id: string): KnownVersions {
    const statements = this.#open();
    const row = statements.lineage()?.id === lineage ? statements.versions(id) : undefined;
    return row ?? { newest: 0, held: 0 };
  }

  /** Undefined where there is none, none that may be given, or where it was last known to be true before `since` (ms). */
  read(lineage: string, id: string, since: number, now: number): StoredDocument | undefined {
    const statements = this.#open();
    if (statements.lineage()?.id !== lineage) return undefined;
    const row = statements.document(id);
    if (!row) return undefined;
    const { version, floor, run, epoch, readAt, value } = row;
    if (row.crc !== crcOf(lineage, id, version, floor, run, epoch, readAt)) {
      this.remove(id);
      throw new DamagedCopy('row');
    }
    if (value === null || floor > version) return undefined;
    const confirmedAt = statements.confirmedAt(lineage, run, epoch);
    const knownAt = Math.max(readAt, confirmedAt);
    if (knownAt < since || knownAt > now + CLOCK_TOLERANCE_MS) return undefined;
    return { value, version, knownAt };
  }

  regionOfMachine(lineage: string, machineId: number): number | undefined {
    const statements = this.#open();
    if (statements.lineage()?.id !== lineage) return undefined;
    const row = statements.machine(machineId);
    if (!row) return undefined;
    if (row.crc === crcOf(lineage, machineId, row.region)) return row.region;
    statements.removeMachine(machineId);
    throw new DamagedCopy('row');
  }

  /** The lineage that the documents here are of; undefined in an empty copy. */
  lineage(): string | undefined {
    return this.#open().lineage()?.id;
  }

  /** Damaged stamps are left out. */
  stamps(lineage: string): [id: string, stamp: string][] {
    const statements = this.#open();
    if (statements.lineage()?.id !== lineage) return [];
    return statements.stamps().flatMap(({ id, stamp, crc }) => {
      return crc === crcOf(lineage, id, stamp) ? [[id, stamp] as [string, string]] : [];
    });
  }

  remove(id: string): void {
    this.#open().remove(id);
  }

  /** Removes what is far too old to be given. */
  prune(now: number): void {
    const statements = this.#open();
    const { staleLimitMs, tokenStaleLimitMs } = this.#limits;
    this.#inTransaction(false, () =>
      statements.prune({
        floors: now - KEPT_MS,
        documents: now - KEPT_MS - staleLimitMs,
        tokens: now - KEPT_MS - tokenStaleLimitMs,
      }),
    );
  }

  sizes(): CopySizes {
    const statements = this.#open();
    return { bytes: statements.usedPages() * PAGE, documents: statements.count() };
  }

  /** Removes the whole copy, also where SQLite cannot. The next write begins a new one. */
  drop(): void {
    this.close();
    for (const file of listed(this.#folder)) this.#removeFile(file);
  }

  close(): void {
    try {
      this.#database?.close();
    } finally {
      this.#database = undefined;
      this.#statements = undefined;
    }
  }

  /** What is older than this version is given no more. */
  #putOut(lineage: string, id: string, floor: number, now: number): void {
    const statements = this.#statementsNow();
    const row = statements.document(id);
    if (!row || row.floor >= floor) return;
    const crc = crcOf(lineage, id, row.version, floor, row.run, row.epoch, now);
    statements.putOut({ id, floor, readAt: now, crc });
  }

  #keep(lineage: string, document: Batch['documents'][number]): void {
    const statements = this.#statementsNow();
    const { id, version, run, epoch, readAt, value } = document;
    const row = statements.document(id);
    const isDamaged =
      row && row.crc !== crcOf(lineage, id, row.version, row.floor, row.run, row.epoch, row.readAt);
    const floor = isDamaged ? version : Math.max(row?.floor ?? 0, version);
    // Late: something newer was given or heard of.
    if (floor > version) return;
    const isSame = row?.version === version && row.value !== null && !isDamaged;
    const crc = crcOf(lineage, id, version, floor, run, epoch, readAt);
    if (isSame) {
      if (readAt > row.readAt) statements.touch({ id, run, epoch, readAt, crc });
      return;
    }
    if (!value || value.length > this.#limits.bytes / 16 || !this.#makeRoom(value.length)) return;
    statements.set({ id, version, floor, run, epoch, readAt, value, crc });
    if (!id.startsWith('region:')) return;
    const name = nameOf(id);
    const decoded = name && decodeDocument(name, Buffer.from(value.buffer, value.byteOffset, value.length));
    const regionId = Number(id.slice('region:'.length));
    for (const key of decoded?.keys() ?? []) {
      const machineId = Number(key);
      statements.setMachine(machineId, regionId, crcOf(lineage, machineId, regionId));
    }
  }

  #confirm(lineage: string, { run, epoch, at }: Confirmed): void {
    this.#statementsNow().confirm(run, epoch, at, crcOf(lineage, run, epoch, at));
  }

  /**
   * Lists go, those that were read longest ago; without the list of providers or a token nothing is answered.
   * False when those alone fill the room.
   */
  #makeRoom(bytes: number): boolean {
    const statements = this.#statementsNow();
    const pages = Math.ceil(bytes / PAGE) + 1;
    const most = (this.#limits.bytes * FULL) / PAGE;
    while (statements.usedPages() + pages > most) if (!statements.evict()) return false;
    return true;
  }

  #inTransaction<T>(isUrgent: boolean, work: () => T): T {
    const database = this.#database;
    if (!database) throw new Error('unreachable: the file is open');
    if (isUrgent) database.exec('pragma synchronous = full');
    try {
      database.exec('begin immediate');
      try {
        const result = work();
        database.exec('commit');
        return result;
      } catch (error) {
        // Some failures, a full disk among them, have rolled back by themselves.
        if (database.isTransaction) database.exec('rollback');
        throw error;
      }
    } finally {
      if (isUrgent) database.exec('pragma synchronous = normal');
    }
  }

  #statementsNow(): Statements {
    if (!this.#statements) throw new Error('unreachable: the file is open');
    return this.#statements;
  }

  #open(): Statements {
    // Another process may have removed a copy that was damaged, or could not take a version.
    const name = listed(this.#folder).at(-1);
    if (this.#statements && name !== undefined && name === this.#name) return this.#statements;
    this.close();
    try {
      return this.#openNow();
    } catch (error) {
      this.close();
      throw error;
    }
  }

  #openNow(): Statements {
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
    chmodSync(this.#folder, 0o700);
    removeOtherFormats(this.#parent);
    const name = this.#current();
    const path = join(this.#folder, name);
    chmodSync(path, 0o600);
    const database = new DatabaseSync(path, { timeout: LOCKED_MS });
    this.#database = database;
    database.exec(`
      pragma page_size = ${PAGE};
      pragma trusted_schema = off;
      pragma cell_size_check = on;
      pragma journal_mode = wal;
      pragma synchronous = normal;
      pragma wal_autocheckpoint = 256;
      pragma journal_size_limit = ${Math.floor(this.#limits.bytes / 16)};
      pragma max_page_count = ${Math.floor((this.#limits.bytes * MOST) / PAGE)};
      ${SCHEMA}`);
    this.#statements = new Statements(database);
    if (this.#name !== name) this.#begun = true;
    this.#name = name;
    return this.#statements;
  }

  /**
   * The newest file, made where there is none that fits into the limit. A name is never used again: SQLite would remove
   * the files beside the new one when another process closes the old one.
   */
  #current(): string {
    const files = listed(this.#folder);
    const newest = files.at(-1);
    const size = newest === undefined ? undefined : sizeOf(join(this.#folder, newest));
    if (size === undefined || size > this.#limits.bytes) {
      const next = Math.max(Date.now(), Number.parseInt(newest ?? '0', 10) + 1);
      // SQLite gives the files beside it the same mode.
      closeSync(openSync(join(this.#folder, `${next}.sqlite`), 'a', 0o600));
    }
    // Two processes that begin at once both take the later one.
    const [name = '', ...older] = listed(this.#folder).toReversed();
    for (const file of older) this.#removeFile(file);
    return name;
  }

  #removeFile(name: string): void {
    for (const end of ['', '-wal', '-shm']) rmSync(join(this.#folder, name + end), { force: true });
  }
}

const sizeOf = (path: string): number | undefined => statSync(path, { throwIfNoEntry: false })?.size;

/** Names of the copy's files, the newest last. */
function listed(folder: string): string[] {
  try {
    return readdirSync(folder)
      .filter((name) => /^\d{13}\.sqlite$/.test(name))
      .sort();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}
