/** How files of the whole catalogue are stored, and when they go. */
import type { StoredExport } from '../../domain/export-files.ts';
import type { Database, Session } from '../connect.ts';
import { notInArray, sql } from '../drizzle.ts';
import { exportChunks, exports } from '../schema.ts';

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
