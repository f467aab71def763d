/** Makes the files of one state of the catalogue, and stores them. Writing blocks: see make-in-thread.ts. */
import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { mkdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import type { Connection, Store } from '../../db/connection/connect.ts';
import { sql } from '../../db/connection/drizzle.ts';
import {
  EXPORT_SCOPES,
  EXPORT_TABLES,
  type ExportFile,
  type ExportFormat,
  type ExportScope,
  type ExportTable,
  FORMATS_OF,
  storedName,
} from './files.ts';
import { parquetWriter } from './formats/parquet.ts';
import { sqliteWriter } from './formats/sqlite.ts';
import { csvWriter, ndjsonWriter } from './formats/text.ts';
import { claimExports, exportState, pruneExports, readTable, storeExport } from './queries.ts';
import { columnsOf, type Row, type TableWriter } from './tables.ts';

export type Made =
  | { readonly outcome: 'made'; readonly version: string; readonly rows: number; readonly bytes: number }
  /** The newest files are of this state, or no catalogue was read yet. */
  | { readonly outcome: 'unchanged' }
  | { readonly outcome: 'busy' };

const ROWS_AT_ONCE = 2000;
const CHUNK_BYTES = 256 * 1024;
/** Milliseconds of silence after which PostgreSQL ends the connection of a maker that hangs. */
const SILENT_AT_MOST_MS = 120_000;
const TEXTS: readonly ExportFormat[] = ['ndjson', 'csv'];

/**
 * Makes all files from one snapshot, and stores them in one transaction. The lock allows one maker at a time, and ends with
 * the maker's connection.
 * @param folder does not exist, or has the rest of an earlier attempt; it is removed at the end
 */
export async function makeExports(store: Store, folder: string): Promise<Made> {
  await using connection = store.connection();
  if (!(await claimExports(connection))) return { outcome: 'busy' };
  for (const timeout of ['idle_session_timeout', 'idle_in_transaction_session_timeout'])
    await connection.sql`select set_config(${timeout}, ${String(SILENT_AT_MOST_MS)}, false)`;
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true, mode: 0o700 });
  try {
    const snapshot = await writeFiles(connection, folder);
    return snapshot ? await storeFiles(connection, folder, snapshot) : { outcome: 'unchanged' };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function writeFiles({ db, sql: client }: Connection, folder: string) {
  await db.execute(sql`begin isolation level repeatable read read only`);
  const { version, currency, now: createdAt, made } = await exportState(client);
  if (version === null || made?.version === version) return undefined;
  const metadata = { version, created_at: createdAt, ...(currency !== null && { currency }) };
  const written: ReturnType<ScopeWriter['finish']>[] = [];
  for (const table of EXPORT_TABLES) {
    const writers = EXPORT_SCOPES.map((scope) => scopeWriter(folder, table, scope, metadata));
    await readTable(client, table, (row, isAvailable) => {
      for (const writer of writers) if (isAvailable || writer.scope === 'all') writer.write(row);
    });
    written.push(...writers.map((writer) => writer.finish()));
  }
  await db.execute(sql`commit`);
  const tables = EXPORT_SCOPES.flatMap((scope) => written.filter((each) => each.scope === scope));
  return { version, currency, createdAt, tables };
}

type ScopeWriter = ReturnType<typeof scopeWriter>;

function scopeWriter(
  folder: string,
  table: ExportTable,
  scope: ExportScope,
  metadata: Readonly<Record<string, string>>,
) {
  const columns = columnsOf(table, scope);
  const pathOf = (format: ExportFormat) =>
    join(folder, storedName(`${table}.${format}` as ExportFile, scope));
  const open: Readonly<Record<ExportFormat, (path: string) => TableWriter>> = {
    ndjson: (path) => ndjsonWriter(path, columns),
    csv: (path) => csvWriter(path, columns),
    parquet: (path) => parquetWriter(path, columns, metadata),
    sqlite: (path) => sqliteWriter(path, table, columns),
  };
  const writers = FORMATS_OF[table].map((format) => open[format](pathOf(format)));
  let rows = 0;
  let batch: Row[] = [];
  const flush = () => {
    for (const writer of writers) writer.write(batch);
    rows += batch.length;
    batch = [];
  };
  return {
    scope,
    /** @param row may have more values than the table has columns */
    write(row: Row) {
      if (batch.push(row.slice(0, columns.length)) === ROWS_AT_ONCE) flush();
    },
    finish() {
      flush();
      for (const writer of writers) writer.finish();
      return { table, scope, rows };
    },
  };
}

async function storeFiles(
  { db }: Connection,
  folder: string,
  snapshot: NonNullable<Awaited<ReturnType<typeof writeFiles>>>,
): Promise<Made> {
  const { version, currency, createdAt, tables } = snapshot;
  let total = 0;
  const storeOne = async (
    file: ReturnType<typeof storedName>,
    rows: number,
    coding: 'identity' | 'gzip',
    path: string,
  ) => {
    const { size: bytes } = await stat(path);
    const hash = await hashOf(path);
    const stored = { version, file, coding, currency, createdAt, rows, bytes, hash, chunkBytes: CHUNK_BYTES };
    await storeExport(db, stored, chunksOf(path));
    total += bytes;
  };
  await db.execute(sql`begin`);
  for (const { table, scope, rows } of tables)
    for (const format of FORMATS_OF[table]) {
      const file = storedName(`${table}.${format}`, scope);
      const path = join(folder, file);
      await storeOne(file, rows, 'identity', path);
      if (!TEXTS.includes(format)) continue;
      const compressed = `${path}.gz`;
      await pipeline(createReadStream(path), createGzip(), createWriteStream(compressed));
      await storeOne(file, rows, 'gzip', compressed);
      await rm(compressed);
    }
  await pruneExports(db);
  await db.execute(sql`commit`);
  const rows = tables.reduce((sum, each) => (each.scope === 'now' ? sum + each.rows : sum), 0);
  return { outcome: 'made', version, rows, bytes: total };
}

async function hashOf(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const part of createReadStream(path)) hash.update(part as Buffer);
  return hash.digest('base64url');
}

async function* chunksOf(path: string): AsyncGenerator<Buffer> {
  let rest = Buffer.alloc(0);
  for await (const part of createReadStream(path, { highWaterMark: CHUNK_BYTES })) {
    rest = Buffer.concat([rest, part as Buffer]);
    for (; rest.length >= CHUNK_BYTES; rest = rest.subarray(CHUNK_BYTES)) yield rest.subarray(0, CHUNK_BYTES);
  }
  if (rest.length > 0) yield rest;
}
