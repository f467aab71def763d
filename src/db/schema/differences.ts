import { index, pgTable } from '../connection/drizzle.ts';
import { instant } from './shared-columns.ts';

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
