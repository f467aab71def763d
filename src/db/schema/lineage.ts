import { check, pgTable, sql } from '../connection/drizzle.ts';
import { instant } from './shared-columns.ts';

/**
 * The identity of this database's history. It is part of every cache key, so that documents of an old Redis never replace
 * those of a new or restored database. `providers_version` is the version of the list of providers.
 */
export const lineage = pgTable(
  'lineage',
  (c) => ({
    singleton: c.boolean('singleton').primaryKey().default(true),
    id: c.uuid('id').notNull().defaultRandom(),
    createdAt: instant('created_at').notNull().defaultNow(),
    /** `database_identity()` when the lineage began; null until the first publication. Another database returns another one. */
    databaseIdentity: c.text('database_identity'),
    /** Set by the first use. A database of the sample rejects live data, and the other way round. */
    content: c.text('content', { enum: ['sample', 'live'] }),
    /** Since when the changes of runs are complete; see run-changes.ts. */
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
