import { bigint, boolean, check, pgTable, sql, text, uuid } from '../connection/drizzle.ts';
import { instant } from './columns.ts';

/**
 * The identity of this database's history. It is part of every cache key, so that an old Redis never outranks a
 * database that was created or restored since. `providers_version` is the version of the list of providers.
 */
export const lineage = pgTable(
  'lineage',
  {
    singleton: boolean('singleton').primaryKey().default(true),
    id: uuid('id').notNull().defaultRandom(),
    createdAt: instant('created_at').notNull().defaultNow(),
    /**
     * What the function `database_identity()` said where this lineage began; null until the first publication. A restored
     * or copied database says something else.
     */
    databaseIdentity: text('database_identity'),
    /** Set by the first use: a database of the sample never takes live data, nor the other way round. */
    content: text('content', { enum: ['sample', 'live'] }),
    /** Since when all changes are kept, see schema/changes.ts. */
    changesSince: instant('changes_since').notNull().defaultNow(),
    /** Of every stored price per minute; null while it is not known, see currency.ts in src/db. */
    currency: text('currency'),
    providersVersion: bigint('providers_version', { mode: 'number' }).notNull().default(1),
    providersPublishedVersion: bigint('providers_published_version', { mode: 'number' }).notNull().default(0),
  },
  (t) => [check('lineage_has_one_row', sql`${t.singleton}`)],
);
