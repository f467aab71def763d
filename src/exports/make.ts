/** Makes the files of one state of the catalogue, and stores them. It blocks while it writes: see make-in-thread.ts. */
import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { mkdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import type { Session, Store } from '../db/connect.ts';
import { sql } from '../db/drizzle.ts';
import { claimExports, pruneExports, storeExport } from '../db/queries/exports.ts';
import { exportState, machineRows, priceRows } from '../db/reads/exports.ts';
import {
  EXPORT_FORMATS,
  EXPORT_TABLES,
  type ExportFormat,
  type ExportTable,
} from '../domain/export-files.ts';
import { COLUMNS } from './columns.ts';
import { csvWriter } from './formats/csv.ts';
import { ndjsonWriter } from './formats/ndjson.ts';
import { parquetWriter } from './formats/parquet.ts';
import { sqliteWriter } from './formats/sqlite.ts';
import type { TableWriter } from './formats/table-writer.ts';

export interface MakeOptions {
  readonly store: Store;
  /** Does not exist, or only holds what is left of an earlier attempt; removed at the end. */
  readonly folder: string;
}

export type Made =
  | { readonly outcome: 'made'; readonly version: string; readonly rows: number; readonly bytes: number }
  /** The newest files are of this very state, or nothing was read yet. */
  | { readonly outcome: 'unchanged' }
  /** Another process makes them. */
  | { readonly outcome: 'busy' };

/** Rows that are read from PostgreSQL at a time. */
const ROWS_AT_ONCE = 2000;
/** Bytes of a chunk: what a download keeps in memory is a few of them. */
const CHUNK_BYTES = 256 * 1024;
/** Milliseconds of silence after which PostgreSQL ends the session of a maker that hangs. */
const SILENT_AT_MOST_MS = 120_000;
/** Formats that are text: what is stored of them is compressed as well. */
const TEXTS: readonly ExportFormat[] = ['ndjson', 'csv'];

/**
 * All files are of one snapshot, and all are stored in one transaction. One maker at a time: the lock is the session's, so
 * that it ends with its process.
 */
export async function makeExports({ store, folder }: MakeOptions): Promise<Made> {
  await using session = store.session();
  if (!(await claimExports(session))) return { outcome: 'busy' };
  for (const what of ['idle_session_timeout', 'idle_in_transaction_session_timeout'])
    await session.sql`select set_config(${what}, ${String(SILENT_AT_MOST_MS)}, false)`;
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true, mode: 0o700 });
  try {
    const snapshot = await writeFiles(session, folder);
    return snapshot ? await storeFiles(session, folder, snapshot) : { outcome: 'unchanged' };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

interface Snapshot {
  readonly version: string;
  readonly currency: string | null;
  /** RFC 3339. */
  readonly createdAt: string;
  readonly rows: Readonly<Record<ExportTable, number>>;
}

/** Undefined where there is nothing new to write. */
async function writeFiles(session: Session, folder: string): Promise<Snapshot | undefined> {
  const { db } = session;
  await db.execute(sql`begin isolation level repeatable read read only`);
  const { version, currency, now: createdAt, made } = await exportState(session.sql);
  if (version === null || made?.version === version) return undefined;
  const metadata = { version, created_at: createdAt, ...(currency !== null && { currency }) };
  const rows = { machines: 0, prices: 0 };
  for (const table of EXPORT_TABLES) {
    const writers = EXPORT_FORMATS.map((format) =>
      open(format, join(folder, `${table}.${format}`), table, metadata),
    );
    const batches = { machines: machineRows, prices: priceRows }[table](session.sql, ROWS_AT_ONCE);
    for await (const batch of batches) {
      for (const writer of writers) writer.write(batch);
      rows[table] += batch.length;
    }
    for (const writer of writers) writer.finish();
  }
  await db.execute(sql`commit`);
  return { version, currency, createdAt, rows };
}

function open(
  format: ExportFormat,
  path: string,
  table: ExportTable,
  metadata: Readonly<Record<string, string>>,
): TableWriter {
  const columns = COLUMNS[table];
  switch (format) {
    case 'ndjson':
      return ndjsonWriter(path, columns);
    case 'csv':
      return csvWriter(path, columns);
    case 'parquet':
      return parquetWriter(path, columns, metadata);
    case 'sqlite':
      return sqliteWriter(path, table, columns);
  }
}

async function storeFiles(session: Session, folder: string, snapshot: Snapshot): Promise<Made> {
  const { db } = session;
  const { version, currency, createdAt, rows } = snapshot;
  let bytes = 0;
  const storeOne = async (
    table: ExportTable,
    format: ExportFormat,
    coding: 'identity' | 'gzip',
    path: string,
  ) => {
    const { size } = await stat(path);
    const of = { version, file: `${table}.${format}`, coding, currency, createdAt } as const;
    const stored = {
      ...of,
      rows: rows[table],
      bytes: size,
      hash: await hashOf(path),
      chunkBytes: CHUNK_BYTES,
    };
    await storeExport(db, stored, chunksOf(path));
    bytes += size;
  };
  await db.execute(sql`begin`);
  for (const table of EXPORT_TABLES)
    for (const format of EXPORT_FORMATS) {
      const path = join(folder, `${table}.${format}`);
      await storeOne(table, format, 'identity', path);
      if (!TEXTS.includes(format)) continue;
      const compressed = `${path}.gz`;
      await pipeline(createReadStream(path), createGzip(), createWriteStream(compressed));
      await storeOne(table, format, 'gzip', compressed);
      await rm(compressed);
    }
  await pruneExports(db);
  await db.execute(sql`commit`);
  return { outcome: 'made', version, rows: rows.machines + rows.prices, bytes };
}

async function hashOf(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const part of createReadStream(path)) hash.update(part as Buffer);
  return hash.digest('base64url');
}

/** The bytes of a file, `CHUNK_BYTES` at a time: so many come of each read but the last. */
async function* chunksOf(path: string): AsyncGenerator<Buffer> {
  let rest = Buffer.alloc(0);
  for await (const part of createReadStream(path, { highWaterMark: CHUNK_BYTES })) {
    rest = Buffer.concat([rest, part as Buffer]);
    for (; rest.length >= CHUNK_BYTES; rest = rest.subarray(CHUNK_BYTES)) yield rest.subarray(0, CHUNK_BYTES);
  }
  if (rest.length > 0) yield rest;
}
