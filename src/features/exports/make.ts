/** Makes the files of one state of the catalogue, and stores them. It blocks while it writes: see make-in-thread.ts. */
import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { mkdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import type { Session, Store } from '../../db/connection/connect.ts';
import { sql } from '../../db/connection/drizzle.ts';
import { columnsOf, type Row } from './columns.ts';
import {
  EXPORT_FORMATS,
  EXPORT_SCOPES,
  EXPORT_TABLES,
  type ExportFormat,
  type ExportScope,
  type ExportTable,
  storedName,
} from './files.ts';
import { csvWriter } from './formats/csv.ts';
import { ndjsonWriter } from './formats/ndjson.ts';
import { parquetWriter } from './formats/parquet.ts';
import { sqliteWriter } from './formats/sqlite.ts';
import type { TableWriter } from './formats/table-writer.ts';
import { claimExports, exportState, machineRows, priceRows, pruneExports, storeExport } from './queries.ts';

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

/** Rows that the writers get at a time. */
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

/** A table of one scope, in every format. */
interface WrittenTable {
  readonly table: ExportTable;
  readonly scope: ExportScope;
  readonly rows: number;
}

/** The path of a file until it is stored. */
const pathOf = (folder: string, { table, scope }: Omit<WrittenTable, 'rows'>, format: ExportFormat) =>
  join(folder, storedName(`${table}.${format}`, scope));

const KINDS = EXPORT_SCOPES.flatMap((scope) => EXPORT_TABLES.map((table) => ({ scope, table })));

interface Snapshot {
  readonly version: string;
  readonly currency: string | null;
  /** RFC 3339. */
  readonly createdAt: string;
  readonly tables: readonly WrittenTable[];
}

/** Undefined where there is nothing new to write. */
async function writeFiles(session: Session, folder: string): Promise<Snapshot | undefined> {
  const { db } = session;
  await db.execute(sql`begin isolation level repeatable read read only`);
  const { version, currency, now: createdAt, made } = await exportState(session.sql);
  if (version === null || made?.version === version) return undefined;
  const metadata = { version, created_at: createdAt, ...(currency !== null && { currency }) };
  const tables: WrittenTable[] = [];
  for (const kind of KINDS) {
    const { table, scope } = kind;
    const writers = EXPORT_FORMATS.map((format) =>
      open(format, pathOf(folder, kind, format), table, scope, metadata),
    );
    const read = { machines: machineRows, prices: priceRows }[table];
    let rows = 0;
    let batch: Row[] = [];
    const write = () => {
      for (const writer of writers) writer.write(batch);
      rows += batch.length;
      batch = [];
    };
    await read(session.sql, scope, (row) => {
      if (batch.push(row) === ROWS_AT_ONCE) write();
    });
    write();
    for (const writer of writers) writer.finish();
    tables.push({ table, scope, rows });
  }
  await db.execute(sql`commit`);
  return { version, currency, createdAt, tables };
}

function open(
  format: ExportFormat,
  path: string,
  table: ExportTable,
  scope: ExportScope,
  metadata: Readonly<Record<string, string>>,
): TableWriter {
  const columns = columnsOf(table, scope);
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
  const { version, currency, createdAt, tables } = snapshot;
  let bytes = 0;
  const storeOne = async (
    { table, scope, rows }: WrittenTable,
    format: ExportFormat,
    coding: 'identity' | 'gzip',
    path: string,
  ) => {
    const { size } = await stat(path);
    const file = storedName(`${table}.${format}`, scope);
    const of = { version, file, coding, currency, createdAt } as const;
    const stored = {
      ...of,
      rows,
      bytes: size,
      hash: await hashOf(path),
      chunkBytes: CHUNK_BYTES,
    };
    await storeExport(db, stored, chunksOf(path));
    bytes += size;
  };
  await db.execute(sql`begin`);
  for (const table of tables)
    for (const format of EXPORT_FORMATS) {
      const path = pathOf(folder, table, format);
      await storeOne(table, format, 'identity', path);
      if (!TEXTS.includes(format)) continue;
      const compressed = `${path}.gz`;
      await pipeline(createReadStream(path), createGzip(), createWriteStream(compressed));
      await storeOne(table, format, 'gzip', compressed);
      await rm(compressed);
    }
  await pruneExports(db);
  await db.execute(sql`commit`);
  const rows = tables.reduce((sum, table) => (table.scope === 'now' ? sum + table.rows : sum), 0);
  return { outcome: 'made', version, rows, bytes };
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
