/** The changes feed, and the last state of each list that it covered (decision 0051). No foreign keys: they would check each row. */
import { check, index, pgTable, primaryKey, sql } from '../connection/drizzle.ts';
import { instant } from './shared-columns.ts';

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
