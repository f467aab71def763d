/** What the files of the whole catalogue are made from, and what is stored of them. */

import type { Sql } from '../../db/connection/client.ts';
import type { Database, Session } from '../../db/connection/connect.ts';
import { notInArray, sql } from '../../db/connection/drizzle.ts';
import { exportChunks, exports } from '../../db/schema.ts';
import { IS_PUBLISHED, IS_PUBLISHED_OR_SOLD_OUT } from '../../db/shown-rows.ts';
import type { ExportScope, StoredExport } from './files.ts';

/** Part of every version: rises when the same rows make other files. */
const FORMAT = 2;

/** The state of the catalogue, and the files that were made last. */
export interface ExportState {
  /** Names the state; null while no region was read, and nothing is there to be exported. */
  readonly version: string | null;
  /** The currency of the prices, ISO 4217; null while it is not known. */
  readonly currency: string | null;
  /** RFC 3339. */
  readonly now: string;
  readonly made: {
    readonly version: string;
    /** RFC 3339. */
    readonly createdAt: string;
    readonly ageSeconds: number;
  } | null;
  /** For how long the catalogue has been ahead of these files; 0 while they are of its present state. */
  readonly behindSeconds: number;
}

export async function exportState(sql: Sql): Promise<ExportState> {
  // Versions of documents only rise, so that no two states have the same name.
  const [row] = await sql<[Omit<ExportState, 'behindSeconds'> & { aheadSeconds: number }]>`
    select l.currency, to_char(now() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as now,
      case when exists (select from region_freshness) then
        left(translate(encode(sha256(convert_to(concat_ws(' ', ${FORMAT}::int, l.id, l.providers_version, l.currency, (
          select string_agg(r.id || ':' || r.version, ',' order by r.id) from regions r where r.organization_id is null
        )), 'UTF8')), 'base64'), '+/', '-_'), 22) end as version,
      (select json_build_object('version', e.version,
          'createdAt', to_char(e.created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
          'ageSeconds', extract(epoch from clock_timestamp() - e.created_at))
        from exports e order by e.id desc limit 1) as made,
      -- Since the first run that has changed a catalogue since.
      (select coalesce(greatest(extract(epoch from now() - min(c.changed_at)), 0), 0)::float8
        from sync_runs c join sources s on s.id = c.source_id and s.kind = 'catalogue'
        where c.changed_at > coalesce((select created_at from exports order by id desc limit 1), '-infinity')
      ) as "aheadSeconds"
    from lineage l`;
  const { aheadSeconds, ...state } = row;
  const isCurrent = state.version === null || state.version === state.made?.version;
  return { ...state, behindSeconds: isCurrent ? 0 : aheadSeconds };
}

/** Seconds after which files that are behind are somebody's trouble, where they are made every so many seconds. */
export function exportsMayBeBehind(everySeconds: number): number {
  return 3600 + 2 * everySeconds;
}

/** Values in the order of the columns of an exported table. */
type Values = readonly (string | number | null)[];

const isIn = (sql: Sql, scope: ExportScope) =>
  sql.unsafe(scope === 'all' ? IS_PUBLISHED_OR_SOLD_OUT : IS_PUBLISHED);

/** Reads all machines of the scope as an exported table has them, by id. */
export async function machineRows(sql: Sql, scope: ExportScope, take: (row: Values) => void): Promise<void> {
  const query = sql`
    select m.id, m.name, m.cpu, m.ram::int, m.ram_unit,
      (m.ram * case m.ram_unit when 'Binary' then 1073741824 else 1000000000 end)::float8,
      m.price::float8, (select currency from lineage), p.id, p.name, r.id, r.code, r.name,
      m.architecture, m.generation, m.cpu_kind, m.local_disk::float8, m.network::float8,
      to_char(f.verified_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
      ${scope === 'all' ? sql`, (m.excluded_reason is null)::int` : sql``}
    from machines m
    join regions r on r.id = m.region_id and r.organization_id is null
    join providers p on p.id = r.provider_id
    left join region_freshness f on f.source_id = m.source_id and f.region_id = m.region_id
    where ${isIn(sql, scope)}
    order by m.id`;
  await query.values().forEach(take);
}

/** Reads what each of these machines has cost, as readers see it: while it was withdrawn for its price there is a gap. */
export async function priceRows(sql: Sql, scope: ExportScope, take: (row: Values) => void): Promise<void> {
  const query = sql`
    select h.machine_id, h.price::float8,
      to_char(h.valid_from at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
      to_char(h.valid_to at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
    from machine_prices h
    join machines m on m.id = h.machine_id and ${isIn(sql, scope)}
    join regions r on r.id = m.region_id and r.organization_id is null
    where h.price > 0
    order by h.machine_id, h.valid_from`;
  await query.values().forEach(take);
}

/** All files of the newest version; empty before the first was made. */
export async function newestExports(sql: Sql): Promise<StoredExport[]> {
  return sql<StoredExport[]>`
    select id::float8 as id, version, file, coding, bytes::float8 as bytes, rows::float8 as rows, hash,
      chunk_bytes as "chunkBytes", currency,
      to_char(created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as "createdAt"
    from exports where version = (select version from exports order by id desc limit 1)
    order by id`;
}

/** Undefined when it is not stored, or no longer. */
export async function exportChunk(sql: Sql, exportId: number, position: number): Promise<Buffer | undefined> {
  const [row] = await sql<{ data: Buffer }[]>`
    select data from export_chunks where export_id = ${exportId} and position = ${position}`;
  return row?.data;
}

/** Versions that are kept: a download of the one before goes on while the newest is there. */
const VERSIONS_KEPT = 2;

/** True when this session is the one that makes files: no other one is, until it ends. */
export async function claimExports({ sql: client }: Session): Promise<boolean> {
  const [row] = await client<{ claimed: boolean }[]>`
    select pg_try_advisory_lock(hashtextextended('fleetbook exports', 0)) as claimed`;
  return row?.claimed === true;
}

/** Stores one file, in the transaction that is under way. @param chunks of `chunkBytes`, but the last */
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

/** Forgets all but the newest versions. */
export async function pruneExports(db: Database): Promise<void> {
  const newest = await db
    .select({ version: exports.version })
    .from(exports)
    .groupBy(exports.version)
    .orderBy(sql`max(${exports.id}) desc`)
    .limit(VERSIONS_KEPT);
  const kept = newest.map(({ version }) => version);
  if (kept.length > 0) await db.delete(exports).where(notInArray(exports.version, kept));
}
