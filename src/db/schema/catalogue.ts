import type { MemoryUnit } from '../../domain/machine.ts';
import type { StoredRegionPrice } from '../../domain/prices/region-price.ts';
import type { StoredTerms } from '../../domain/prices/term.ts';
import { STOCKS } from '../../domain/stock.ts';
import { check, index, pgTable, primaryKey, sql, unique } from '../connection/drizzle.ts';
import { organizations } from './organizations.ts';
import { amount, factColumns, instant, minutePrice, reference, statedPrice } from './shared-columns.ts';

export const providers = pgTable('providers', (c) => ({
  id: c.integer('id').primaryKey().generatedByDefaultAsIdentity({ startWith: 1000 }),
  name: c.text('name').notNull().unique(),
  /** True once a catalogue lists machines of the provider. `/v1/providers` omits those that only clusters, or plans of databases, name. */
  listed: c.boolean('listed').notNull().default(false),
  /** Price changes from this time on leave existing machines alone, see docs/decisions/0103. Null: they apply to all. */
  keepsPricesSince: instant('keeps_prices_since'),
}));

/** `version` is the version of the region's document. The publisher still has to publish it if `published_version` is lower. */
export const regions = pgTable(
  'regions',
  (c) => ({
    id: c.integer('id').primaryKey().generatedByDefaultAsIdentity(),
    providerId: reference('provider_id', () => providers.id),
    code: c.text('code').notNull(),
    name: c.text('name').notNull(),
    /** ISO 3166-1 alpha-2, as the source or the table of known regions states it. */
    country: c.text('country'),
    /** Null for a region of a catalogue; otherwise the organization whose clusters are the only ones to name it. */
    organizationId: c.integer('organization_id').references(() => organizations.id),
    version: c.bigint('version', { mode: 'number' }).notNull().default(1),
    publishedVersion: c.bigint('published_version', { mode: 'number' }).notNull().default(0),
    /** The version that the changes feed has covered. A first version has no changes. */
    announcedVersion: c.bigint('told_version', { mode: 'number' }).notNull().default(1),
    /** Prices besides those of machines. Null: unknown. */
    prices: c.jsonb('prices').$type<readonly StoredRegionPrice[]>(),
  }),
  (t) => [
    unique('regions_natural_key').on(t.providerId, t.code, t.organizationId).nullsNotDistinct(),
    index('regions_dirty').on(t.id).where(sql`published_version < version`),
    index('regions_untold').on(t.id).where(sql`told_version < version`),
  ],
);

/**
 * Every machine type that a source reports, published or not. Triggers check `region_id`, `source_id` and
 * `machine_prices.machine_id` once per statement; a foreign key would check each row. See decision 0013.
 */
export const machines = pgTable(
  'machines',
  (c) => ({
    id: c.integer('id').primaryKey().generatedByDefaultAsIdentity(),
    regionId: c.integer('region_id').notNull(),
    name: c.text('name').notNull(),
    cpu: c.integer('cpu').notNull(),
    /** In `ram_unit`. Published machines have an integer. */
    ram: c.numeric('ram').notNull(),
    ramUnit: c.text('ram_unit', { enum: ['Binary', 'Decimal'] }).notNull(),
    price: minutePrice('price'),
    sourceAmount: amount('source_amount'),
    sourcePer: c.text('source_per', { enum: ['minute', 'hour', 'month'] }),
    sourceCurrency: c.text('source_currency'),
    excludedReason: c.text('excluded_reason'),
    sourceId: c.text('source_id'),
    missedRuns: c.smallint('missed_runs').notNull().default(0),
    retiredAt: instant('retired_at'),
    createdAt: instant('created_at').notNull().defaultNow(),
    /** The run that added it. Null for machines that clusters named first. */
    addedBy: c.bigint('added_by', { mode: 'number' }),
    /** Prices of other terms. Null: none is known. */
    terms: c.jsonb('terms').$type<StoredTerms>(),
    /** The times of `availableShare` in domain/stock.ts. Null: the machine is available since its first read, or was in no list yet. */
    stock: c.bigint('stock', { mode: 'number' }).array(),
    ...factColumns,
  }),
  (t) => [
    unique('machines_natural_key').on(t.regionId, t.name),
    // The count of machines per source reads only this index.
    index('machines_of_source').on(t.sourceId, t.addedBy, t.retiredAt, t.excludedReason),
    // Few machines have an end, and the sweep of every minute reads only them.
    index('machines_by_end')
      .on(sql`least(${t.orderableUntil}, ${t.retiresAt})`)
      .where(sql`least(${t.orderableUntil}, ${t.retiresAt}) is not null`),
    check(
      'published_machines_are_whole_and_priced',
      sql`${t.excludedReason} is not null or (${t.ram} = trunc(${t.ram}) and coalesce(${t.price}, 0) > 0)`,
    ),
  ],
);

/** Price history: one row per price of the source. `valid_to` is null for the current one. */
export const machinePrices = pgTable(
  'machine_prices',
  (c) => ({
    machineId: c.integer('machine_id').notNull(),
    validFrom: instant('valid_from').notNull(),
    validTo: instant('valid_to'),
    price: minutePrice('price'),
    ...statedPrice,
  }),
  // BRIN is cheap for a sync: rows arrive in the order of their times.
  (t) => [
    primaryKey({ columns: [t.machineId, t.validFrom] }),
    index('machine_prices_by_time').using('brin', t.validFrom),
  ],
);

/** History of `machines.terms`: one row per change of any term. `valid_to` is null for the current one. */
export const machineTerms = pgTable(
  'machine_terms',
  (c) => ({
    machineId: c.integer('machine_id').notNull(),
    validFrom: instant('valid_from').notNull(),
    validTo: instant('valid_to'),
    terms: c.jsonb('terms').$type<StoredTerms>().notNull(),
  }),
  (t) => [
    primaryKey({ columns: [t.machineId, t.validFrom] }),
    index('machine_terms_by_time').using('brin', t.validFrom),
  ],
);

/**
 * Changes of the stock of machines. A null state is that of a machine in no list: it is excluded for another reason, or retired.
 * The state at the first read needs no row: `machines.created_at` has its time, and the first change what it was.
 */
export const machineAvailability = pgTable(
  'machine_availability',
  (c) => ({
    machineId: c.integer('machine_id').notNull(),
    changedAt: instant('changed_at').notNull(),
    before: c.text('before', { enum: STOCKS }),
    after: c.text('after', { enum: STOCKS }),
  }),
  (t) => [primaryKey({ columns: [t.machineId, t.changedAt] })],
);

/** History of `regions.prices`: one row per change of any price. `valid_to` is null for the current one. */
export const regionPrices = pgTable(
  'region_prices',
  (c) => ({
    regionId: reference('region_id', () => regions.id),
    validFrom: instant('valid_from').notNull(),
    validTo: instant('valid_to'),
    prices: c.jsonb('prices').$type<readonly StoredRegionPrice[]>().notNull(),
  }),
  (t) => [primaryKey({ columns: [t.regionId, t.validFrom] })],
);

/** Plans of managed databases, see domain/database-plan.ts. A null price has no exchange rate, and is not published. */
export const databasePlans = pgTable(
  'database_plans',
  (c) => ({
    id: c.integer('id').primaryKey().generatedByDefaultAsIdentity(),
    regionId: reference('region_id', () => regions.id),
    engine: c.text('engine').notNull(),
    name: c.text('name').notNull(),
    nodes: c.integer('nodes'),
    cpu: c.integer('cpu'),
    ram: c.numeric('ram'),
    ramUnit: c.text('ram_unit').$type<MemoryUnit>(),
    storage: c.numeric('storage'),
    price: minutePrice('price'),
    ...statedPrice,
    sourceId: c.text('source_id').notNull(),
    retiredAt: instant('retired_at'),
  }),
  (t) => [unique('database_plans_natural_key').on(t.regionId, t.engine, t.name, t.nodes).nullsNotDistinct()],
);

/** Price history: one row per price of the source. `valid_to` is null for the current one. */
export const databasePlanPrices = pgTable(
  'database_plan_prices',
  () => ({
    planId: reference('plan_id', () => databasePlans.id),
    validFrom: instant('valid_from').notNull(),
    validTo: instant('valid_to'),
    price: minutePrice('price'),
    ...statedPrice,
  }),
  (t) => [primaryKey({ columns: [t.planId, t.validFrom] })],
);

/** The latest reference rates of the European Central Bank: units of the currency per euro. */
export const exchangeRates = pgTable('exchange_rates', (c) => ({
  currency: c.text('currency').primaryKey(),
  perEuro: c.numeric('per_euro').notNull(),
  asOf: c.date('as_of', { mode: 'string' }).notNull(),
}));
