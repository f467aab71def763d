/** What is published: the lineage, the changes feed, files of the catalogue, and differences of the cache. */
import { check, index, pgTable, primaryKey, sql, unique } from '../connection/drizzle.ts';
import { bytes, instant } from './shared-columns.ts';

/** The identity of this database. It is part of every cache key: old documents never replace those of a restored database. */
export const lineage = pgTable(
  'lineage',
  (c) => ({
    singleton: c.boolean('singleton').primaryKey().default(true),
    id: c.uuid('id').notNull().defaultRandom(),
    /** Made with the database. A copy and a restored backup have the same one. */
    deployment: c.uuid('deployment').notNull().defaultRandom(),
    createdAt: instant('created_at').notNull().defaultNow(),
    /** `database_identity()` when the lineage began; null until the first publication. Another database returns another one. */
    databaseIdentity: c.text('database_identity'),
    /** Set by the first use. A database of the sample rejects live data, and the other way round. */
    content: c.text('content', { enum: ['sample', 'live'] }),
    changesSince: instant('changes_since').notNull().defaultNow(),
    /** Currency of all stored prices per minute; null while unknown. See currency.ts in src/db. */
    currency: c.text('currency'),
    providersVersion: c.bigint('providers_version', { mode: 'number' }).notNull().default(1),
    providersPublishedVersion: c
      .bigint('providers_published_version', { mode: 'number' })
      .notNull()
      .default(0),
  }),
  (t) => [check('lineage_has_one_row', sql`${t.singleton}`)],
);

/** Documents that differed between the cache and PostgreSQL in the latest comparison that found a difference. */
export const cacheDifferences = pgTable(
  'cache_differences',
  (c) => ({
    document: c.text('document').primaryKey(),
    verdict: c.text('verdict').notNull(),
    /** The versions in PostgreSQL and in the cache; 0 if the cached one is unreadable. */
    version: c.bigint('version', { mode: 'number' }).notNull(),
    cached: c.bigint('cached', { mode: 'number' }).notNull(),
    foundAt: instant('found_at').notNull().defaultNow(),
    times: c.integer('times').notNull().default(1),
  }),
  (t) => [index('cache_differences_by_time').on(t.foundAt)],
);

// The changes feed, and the last state of each list that it covered (decision 0051). No foreign keys: they would check each row.

/** The position of the feed. A writer locks this row, so changes become visible in the order of their positions. */
export const feedHead = pgTable(
  'feed_head',
  (c) => ({
    singleton: c.boolean('singleton').primaryKey().default(true),
    position: c.bigint('position', { mode: 'number' }).notNull().default(0),
    pruned: c.bigint('pruned', { mode: 'number' }).notNull().default(0),
    currency: c.text('currency'),
    /** Encrypts cursors. Readers have it, clients do not. */
    cursorKey: c.uuid('cursor_key').notNull().defaultRandom(),
  }),
  (t) => [check('feed_head_has_one_row', sql`${t.singleton}`)],
);

/** Consecutive changes of one region or organization, as parallel arrays. `last` is the position of the last one. */
export const feedChanges = pgTable(
  'feed_changes',
  (c) => ({
    last: c.bigint('last', { mode: 'number' }).primaryKey(),
    count: c.integer('count').notNull(),
    at: instant('at').notNull(),
    /** The clusters' organization; null for changes that every organization sees. */
    organizationId: c.integer('organization_id'),
    regionId: c.integer('region_id'),
    kinds: c.text('kinds').array().notNull(),
    machineIds: c.integer('machine_ids').array(),
    before: c.numeric('before').array(),
    after: c.numeric('after').array(),
    slugs: c.text('slugs').array(),
  }),
  (t) => [
    index('feed_changes_by_organization').on(t.organizationId, t.last),
    index('feed_changes_by_time').on(t.at),
  ],
);

/** The state of a region's list that the feed last covered: machine ids, and a hash of each published machine. */
export const announcedRegions = pgTable('told_regions', (c) => ({
  regionId: c.integer('region_id').primaryKey(),
  currency: c.text('currency'),
  machineIds: c.integer('machine_ids').array().notNull(),
  hashes: c.bigint('hashes', { mode: 'bigint' }).array().notNull(),
  /** Negative for a machine that was sold out. */
  prices: c.numeric('prices').array().notNull(),
}));

export const announcedClusters = pgTable('told_clusters', (c) => ({
  organizationId: c.integer('organization_id').primaryKey(),
  slugs: c.text('slugs').array().notNull(),
  hashes: c.bigint('hashes', { mode: 'bigint' }).array().notNull(),
}));

/** Every slug that a cluster of the organization has or had. A trigger adds them. */
export const clusterSlugs = pgTable(
  'cluster_slugs',
  (c) => ({
    organizationId: c.integer('organization_id').notNull(),
    slug: c.text('slug').notNull(),
  }),
  (t) => [primaryKey({ columns: [t.organizationId, t.slug] })],
);

/** A file of the whole catalogue (decision 0052): of one version, in one coding. One transaction writes all files of a version. */
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
