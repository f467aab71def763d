/** Files of the whole catalogue. See docs/decisions/0052-exports-are-made-once-a-version.md. */
import { pgTable, primaryKey, unique } from '../connection/drizzle.ts';
import { bytes, instant } from './shared-columns.ts';

/** One file of one version, in one coding. One transaction writes all files of a version. */
export const exports = pgTable(
  'exports',
  (c) => ({
    id: c.bigint('id', { mode: 'number' }).primaryKey().generatedAlwaysAsIdentity(),
    version: c.text('version').notNull(),
    file: c.text('file').notNull(),
    coding: c.text('coding', { enum: ['identity', 'gzip'] }).notNull(),
    bytes: c.bigint('bytes', { mode: 'number' }).notNull(),
    rows: c.bigint('rows', { mode: 'number' }).notNull(),
    /** SHA-256 of the coded file in base64url; the ETag. */
    hash: c.text('hash').notNull(),
    chunkBytes: c.integer('chunk_bytes').notNull(),
    currency: c.text('currency'),
    createdAt: instant('created_at').notNull(),
  }),
  (t) => [unique('exports_natural_key').on(t.version, t.file, t.coding)],
);

/** Parts of a file. PostgreSQL compresses those of coding `identity`. */
export const exportChunks = pgTable(
  'export_chunks',
  (c) => ({
    exportId: c
      .bigint('export_id', { mode: 'number' })
      .notNull()
      .references(() => exports.id, { onDelete: 'cascade' }),
    position: c.integer('position').notNull(),
    data: bytes('data').notNull(),
  }),
  (t) => [primaryKey({ columns: [t.exportId, t.position] })],
);
