import type { Sql } from '../../db/connection/client.ts';
import type { Connection, Database } from '../../db/connection/connect.ts';
import { notInArray, sql } from '../../db/connection/drizzle.ts';
import { instant } from '../../db/connection/instant-text.ts';
import { exportChunks, exports } from '../../db/schema.ts';
import type { ExportTable, StoredExport } from './files.ts';
import { type Row, statementOf } from './tables.ts';

/** Part of every version. Raise it if the same rows make other files. */
const FORMAT = 3;

export interface ExportState {
  /** Names the state; null before the first region is read. */
  readonly version: string | null;
  readonly currency: string | null;
  readonly now: string;
  readonly made: {
    readonly version: string;
    readonly createdAt: string;
    readonly ageSeconds: number;
  } | null;
  /** Seconds since the catalogue changed; 0 if the files are of its current state. */
  readonly behindSeconds: number;
}

export async function exportState(sql: Sql): Promise<ExportState> {
  // Versions of documents only rise, so no two states have the same name.
  const [row] = await sql<[Omit<ExportState, 'behindSeconds'> & { aheadSeconds: number }]>`
    select l.currency, ${instant(sql, 'now()', 'us')} as now,
      case when exists (select from region_freshness) then
        left(translate(encode(sha256(convert_to(concat_ws(' ', ${FORMAT}::int, l.id, l.providers_version, l.currency, (
          select string_agg(r.id || ':' || r.version, ',' order by r.id) from regions r where r.organization_id is null
        )), 'UTF8')), 'base64'), '+/', '-_'), 22) end as version,
      (select json_build_object('version', e.version,
          'createdAt', ${instant(sql, 'e.created_at', 'us')},
          'ageSeconds', extract(epoch from clock_timestamp() - e.created_at))
        from exports e order by e.id desc limit 1) as made,
      -- Counts from the first run that changed a catalogue after the newest files.
      (select coalesce(greatest(extract(epoch from now() - min(c.changed_at)), 0), 0)::float8
        from sync_runs c join sources s on s.id = c.source_id and s.kind = 'catalogue'
        where c.changed_at > coalesce((select created_at from exports order by id desc limit 1), '-infinity')
      ) as "aheadSeconds"
    from lineage l`;
  const { aheadSeconds, ...state } = row;
  const isCurrent = state.version === null || state.version === state.made?.version;
  return { ...state, behindSeconds: isCurrent ? 0 : aheadSeconds };
}

/** Returns how far files may be behind (seconds) before an operator should know, for files made every so many seconds. */
export function exportsMayBeBehind(everySeconds: number): number {
  return 3600 + 2 * everySeconds;
}

export async function readTable(
  sql: Sql,
  table: ExportTable,
  take: (row: Row, isAvailable: boolean) => void,
): Promise<void> {
  const query = sql`${sql.unsafe(statementOf(table))}`;
  await query.values().forEach((row: Row) => {
    take(row, row.at(-1) === 1);
  });
}

export async function newestExports(sql: Sql): Promise<StoredExport[]> {
  return sql<StoredExport[]>`
    select id::float8 as id, version, file, coding, bytes::float8 as bytes, rows::float8 as rows, hash,
      chunk_bytes as "chunkBytes", currency,
      ${instant(sql, 'created_at', 'us')} as "createdAt"
    from exports where version = (select version from exports order by id desc limit 1)
    order by id`;
}

export async function exportChunk(sql: Sql, exportId: number, position: number): Promise<Buffer | undefined> {
  const [row] = await sql<{ data: Buffer }[]>`
    select data from export_chunks where export_id = ${exportId} and position = ${position}`;
  return row?.data;
}

/** Stored versions: a download of the previous one goes on after a new one is stored. */
const VERSIONS = 2;

/** Takes the lock of the one maker, until the connection ends. Returns false if another process has it. */
export async function claimExports({ sql: client }: Connection): Promise<boolean> {
  const [row] = await client<{ claimed: boolean }[]>`
    select pg_try_advisory_lock(hashtextextended('fleetbook exports', 0)) as claimed`;
  return row?.claimed === true;
}

/** Stores one file in the current transaction. @param chunks of `chunkBytes`; the last one may be shorter */
export async function storeExport(
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

export async function pruneExports(db: Database): Promise<void> {
  const newest = await db
    .select({ version: exports.version })
    .from(exports)
    .groupBy(exports.version)
    .orderBy(sql`max(${exports.id}) desc`)
    .limit(VERSIONS);
  const versions = newest.map(({ version }) => version);
  if (versions.length > 0) await db.delete(exports).where(notInArray(exports.version, versions));
}
