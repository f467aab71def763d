import type { PriceBookEntry } from '../../domain/prices/price-book.ts';
import { check, index, pgTable, sql } from '../connection/drizzle.ts';
import { providers, regions } from './catalogue.ts';
import { organizations } from './organizations.ts';
import { instant, minutePrice, reference } from './shared-columns.ts';

/**
 * The own prices of organizations, see domain/prices/price-book.ts. An entry is ended and never deleted, so that past costs stay
 * explained. Row-level security shows readers the entries of their organization alone.
 */
export const priceBookEntries = pgTable(
  'price_book_entries',
  (c) => ({
    id: c.integer('id').primaryKey().generatedByDefaultAsIdentity(),
    organizationId: reference('organization_id', () => organizations.id),
    providerId: c.integer('provider_id').references(() => providers.id),
    regionId: c.integer('region_id').references(() => regions.id),
    family: c.text('family'),
    machineId: c.integer('machine_id'),
    term: c.text('term').$type<NonNullable<PriceBookEntry['term']>>(),
    discount: c.numeric('discount'),
    price: minutePrice('price'),
    validFrom: instant('valid_from').notNull(),
    validTo: instant('valid_to'),
    createdAt: instant('created_at').notNull().defaultNow(),
  }),
  (t) => [
    index('price_book_entries_by_organization').on(t.organizationId),
    check('entries_have_one_price', sql`num_nonnulls(${t.discount}, ${t.price}) = 1`),
    check('fixed_prices_name_a_machine', sql`${t.price} is null or ${t.machineId} is not null`),
    check('entries_last', sql`${t.validTo} is null or ${t.validTo} > ${t.validFrom}`),
    check(
      'discounts_are_percentages',
      sql`${t.discount} is null or ${t.discount} > 0 and ${t.discount} <= 100`,
    ),
    check('prices_are_not_negative', sql`${t.price} is null or ${t.price} >= 0`),
  ],
);
