/** What the comparison of the cache with the database finds. */
import { bigint, index, integer, pgTable, text } from '../connection/drizzle.ts';
import { instant } from './columns.ts';

/** Documents that differed between the cache and the database, as the comparison last found them. */
export const cacheDifferences = pgTable(
  'cache_differences',
  {
    /** As logs name it, e.g. `region:7`. */
    document: text('document').primaryKey(),
    verdict: text('verdict').notNull(),
    /** The version that the database has, and the one that the cache held; 0 for one that cannot be read. */
    version: bigint('version', { mode: 'number' }).notNull(),
    cached: bigint('cached', { mode: 'number' }).notNull(),
    foundAt: instant('found_at').notNull().defaultNow(),
    /** How often it was found so far. */
    times: integer('times').notNull().default(1),
  },
  (t) => [index('cache_differences_by_time').on(t.foundAt)],
);
