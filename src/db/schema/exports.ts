/** Files of the whole catalogue, ready to be downloaded: see docs/decisions/0052-exports-are-made-once-a-version.md. */
import { bigint, integer, pgTable, primaryKey, text, unique } from '../connection/drizzle.ts';
import { bytes, instant } from './columns.ts';

/**
 * One file of one version, in one coding. All files of a version are written in one transaction: readers see all of them
 * or none.
 */
export const exports = pgTable(
  'exports',
  {
    id: bigint('id', { mode: 'number' }).primaryKey().generatedAlwaysAsIdentity(),
    /** Names the state of the catalogue: another state has another version. */
    version: text('version').notNull(),
    /** As the API names it, e.g. `machines.parquet`. */
    file: text('file').notNull(),
    coding: text('coding', { enum: ['identity', 'gzip'] }).notNull(),
    /** Of this coding. */
    bytes: bigint('bytes', { mode: 'number' }).notNull(),
    /** Machines or prices in it. */
    rows: bigint('rows', { mode: 'number' }).notNull(),
    /** Of these bytes, SHA-256 in base64url: the entity tag. */
    hash: text('hash').notNull(),
    /** Bytes of each chunk but the last. */
    chunkBytes: integer('chunk_bytes').notNull(),
    /** Of the prices in it; null where no price has ever been published. */
    currency: text('currency'),
    /** When the catalogue was in this state. */
    createdAt: instant('created_at').notNull(),
  },
  (t) => [unique('exports_natural_key').on(t.version, t.file, t.coding)],
);

/** What a file consists of. PostgreSQL compresses what is not compressed yet. */
export const exportChunks = pgTable(
  'export_chunks',
  {
    exportId: bigint('export_id', { mode: 'number' })
      .notNull()
      .references(() => exports.id, { onDelete: 'cascade' }),
    /** From 0. */
    position: integer('position').notNull(),
    data: bytes('data').notNull(),
  },
  (t) => [primaryKey({ columns: [t.exportId, t.position] })],
);
