/** Makes the files of one state of the catalogue, and stores them. Writing blocks: see make-thread.ts. */
import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { mkdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import type { Connection, Database, Store } from '../../db/connection/connect.ts';
import { notInArray, sql } from '../../db/connection/drizzle.ts';
import { only } from '../../db/connection/statements.ts';
import { exportChunks, exports } from '../../db/schema.ts';
import { exportState } from './export-state.ts';
import {
  columnsOf,
  EXPORT_TABLES,
  type ExportFile,
  type ExportFormat,
  type ExportTable,
  FORMATS_OF,
  type Row,
  type StoredExport,
  statementOf,
} from './tables.ts';
import { csvWriter, ndjsonWriter, parquetWriter, sqliteWriter, type TableWriter } from './write-formats.ts';

export type Made =
  | { readonly outcome: 'made'; readonly version: string; readonly rows: number; readonly bytes: number }
  /** The newest files are of this state, or no catalogue was read yet. */
  | { readonly outcome: 'unchanged' }
  | { readonly outcome: 'busy' };

const ROWS_AT_ONCE = 2000;
/** PostgreSQL sends the two hexadecimal digits of each byte, and a reader receives 64 KB at once. */
const CHUNK_BYTES = 32 * 1024;
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
    await connection.db.execute(sql`select set_config(${timeout}, ${String(SILENT_AT_MOST_MS)}, false)`);
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true, mode: 0o700 });
  try {
    const snapshot = await writeFiles(connection, folder);
    return snapshot ? await storeFiles(connection, folder, snapshot) : { outcome: 'unchanged' };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function writeFiles({ db }: Connection, folder: string) {
  const { $client: client } = db;
  await db.execute(sql`begin isolation level repeatable read read only`);
  const { version, currency, now: createdAt, made } = await exportState(db);
  if (version === null || made?.version === version) return undefined;
  const metadata = { version, created_at: createdAt, ...(currency !== null && { currency }) };
  const tables: { readonly table: ExportTable; readonly rows: number }[] = [];
  for (const table of EXPORT_TABLES) {
    const writers = openWriters(folder, table, metadata);
    let rows = 0;
    let batch: Row[] = [];
    const flush = () => {
      for (const writer of writers) writer.write(batch);
      rows += batch.length;
      batch = [];
    };
    // The client gives the rows one by one. Drizzle would hold all of them.
    await client`${client.unsafe(statementOf(table))}`.values().forEach((row: Row) => {
      if (batch.push(row) === ROWS_AT_ONCE) flush();
    });
    flush();
    for (const writer of writers) writer.finish();
    tables.push({ table, rows });
  }
  await db.execute(sql`commit`);
  return { version, currency, createdAt, tables };
}

function openWriters(
  folder: string,
  table: ExportTable,
  metadata: Readonly<Record<string, string>>,
): TableWriter[] {
  const columns = columnsOf(table);
  const open: Readonly<Record<ExportFormat, (path: string) => TableWriter>> = {
    ndjson: (path) => ndjsonWriter(path, columns),
    csv: (path) => csvWriter(path, columns),
    parquet: (path) => parquetWriter(path, columns, metadata),
    sqlite: (path) => sqliteWriter(path, table, columns),
  };
  return FORMATS_OF[table].map((format) => open[format](join(folder, `${table}.${format}`)));
}

async function storeFiles(
  { db }: Connection,
  folder: string,
  snapshot: NonNullable<Awaited<ReturnType<typeof writeFiles>>>,
): Promise<Made> {
  const { version, currency, createdAt, tables } = snapshot;
  let total = 0;
  const storeOne = async (file: ExportFile, rows: number, coding: 'identity' | 'gzip', path: string) => {
    const { size: bytes } = await stat(path);
    const hash = await hashOf(path);
    const stored = { version, file, coding, currency, createdAt, rows, bytes, hash, chunkBytes: CHUNK_BYTES };
    await storeExport(db, stored, chunksOf(path));
    total += bytes;
  };
  await db.execute(sql`begin`);
  for (const { table, rows } of tables)
    for (const format of FORMATS_OF[table]) {
      const file: ExportFile = `${table}.${format}`;
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
  const rows = tables.reduce((sum, each) => sum + each.rows, 0);
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

/** Stored versions: a download of the previous one goes on after a new one is stored. */
const VERSIONS = 2;

/** Takes the lock of the one maker, until the connection ends. Returns false if another process has it. */
async function claimExports({ db }: Connection): Promise<boolean> {
  const rows = await db.execute<{ claimed: boolean }>(
    sql`select pg_try_advisory_lock(hashtextextended('fleetbook exports', 0)) as claimed`,
  );
  return only(rows).claimed;
}

/** Stores one file in the current transaction. @param chunks of `chunkBytes`; the last one may be shorter */
async function storeExport(
  db: Database,
  stored: Omit<StoredExport, 'id'>,
  chunks: AsyncIterable<Buffer>,
): Promise<void> {
  const [row] = await db.insert(exports).values(stored).returning({ id: exports.id });
  if (!row) throw new Error('unreachable: the statement returns its row');
  let position = 0;
  for await (const data of chunks) {
    await db.insert(exportChunks).values({ exportId: row.id, position, data });
    position += 1;
  }
}

async function pruneExports(db: Database): Promise<void> {
  const newest = await db
    .select({ version: exports.version })
    .from(exports)
    .groupBy(exports.version)
    .orderBy(sql`max(${exports.id}) desc`)
    .limit(VERSIONS);
  const versions = newest.map(({ version }) => version);
  if (versions.length > 0) await db.delete(exports).where(notInArray(exports.version, versions));
}
