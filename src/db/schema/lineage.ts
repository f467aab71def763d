import { check, pgTable, sql } from '../connection/drizzle.ts';
import { instant } from './shared-columns.ts';

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
