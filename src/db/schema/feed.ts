/**
 * The changes feed: what the published lists have come to say, in one order, and what it was last told of each of them.
 * See docs/decisions/0051-the-feed-follows-versions-not-writers.md.
 *
 * Nothing here refers to another table by a foreign key: a whole catalogue is told at once.
 */
import {
  bigint,
  boolean,
  check,
  index,
  integer,
  numeric,
  pgTable,
  primaryKey,
  sql,
  text,
  uuid,
} from '../connection/drizzle.ts';
import { instant } from './columns.ts';

/** Where the feed is. Whoever adds to it locks this row: so positions follow each other as they become visible. */
export const feedHead = pgTable(
  'feed_head',
  {
    singleton: boolean('singleton').primaryKey().default(true),
    /** Of the newest change. */
    position: bigint('position', { mode: 'number' }).notNull().default(0),
    /** Changes up to this position are not kept any more. */
    pruned: bigint('pruned', { mode: 'number' }).notNull().default(0),
    /** Of the prices that were told last. */
    currency: text('currency'),
    /** Encrypts cursors. Reader processes have it, clients do not. */
    cursorKey: uuid('cursor_key').notNull().defaultRandom(),
  },
  (t) => [check('feed_head_has_one_row', sql`${t.singleton}`)],
);

/**
 * Changes that follow each other, of one region's machines or of one organization's clusters: `kinds` and, beside it,
 * the id or the slug of each. Their positions end with `last`. What they are about is read from its own table.
 */
export const feedChanges = pgTable(
  'feed_changes',
  {
    last: bigint('last', { mode: 'number' }).primaryKey(),
    count: integer('count').notNull(),
    at: instant('at').notNull(),
    /** Whose clusters these are; null where they concern everybody. */
    organizationId: integer('organization_id'),
    /** Where these machines are; null for other changes. */
    regionId: integer('region_id'),
    kinds: text('kinds').array().notNull(),
    machineIds: integer('machine_ids').array(),
    /** Of machines: the price that was told before, and the one now. */
    before: numeric('before').array(),
    after: numeric('after').array(),
    slugs: text('slugs').array(),
  },
  (t) => [
    index('feed_changes_by_organization').on(t.organizationId, t.last),
    index('feed_changes_by_time').on(t.at),
  ],
);

/** What the feed has told of a region's list: its machines, by id, with a hash of all that is shown of each. */
export const toldRegions = pgTable('told_regions', {
  regionId: integer('region_id').primaryKey(),
  currency: text('currency'),
  machineIds: integer('machine_ids').array().notNull(),
  hashes: bigint('hashes', { mode: 'bigint' }).array().notNull(),
  /** Negative for a machine that the feed last showed as sold out. */
  prices: numeric('prices').array().notNull(),
});

/** What the feed has told of an organization's clusters, by slug. */
export const toldClusters = pgTable('told_clusters', {
  organizationId: integer('organization_id').primaryKey(),
  slugs: text('slugs').array().notNull(),
  hashes: bigint('hashes', { mode: 'bigint' }).array().notNull(),
});

/** Each slug that a cluster of the organization has or had. A trigger adds those of new and of renamed clusters. */
export const clusterSlugs = pgTable(
  'cluster_slugs',
  {
    organizationId: integer('organization_id').notNull(),
    slug: text('slug').notNull(),
  },
  (t) => [primaryKey({ columns: [t.organizationId, t.slug] })],
);
