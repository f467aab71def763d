/** What can be had where, and for how much. */
import {
  bigint,
  boolean,
  check,
  date,
  index,
  integer,
  numeric,
  pgTable,
  primaryKey,
  smallint,
  sql,
  text,
  unique,
} from '../connection/drizzle.ts';
import { amount, factColumns, instant, minutePrice } from './columns.ts';
import { organizations } from './organizations.ts';

export const providers = pgTable('providers', {
  id: integer('id').primaryKey().generatedByDefaultAsIdentity({ startWith: 1000 }),
  name: text('name').notNull().unique(),
  /** Set by the first catalogue of its own; providers that only a cluster names are not in `/v1/providers`. */
  listed: boolean('listed').notNull().default(false),
});

/** `version` counts what the region's published list has been; it is dirty while `published_version` trails behind. */
export const regions = pgTable(
  'regions',
  {
    id: integer('id').primaryKey().generatedByDefaultAsIdentity(),
    providerId: integer('provider_id')
      .notNull()
      .references(() => providers.id),
    code: text('code').notNull(),
    name: text('name').notNull(),
    /** Null for a region that a provider's catalogue lists; else the one organization whose clusters named it. */
    organizationId: integer('organization_id').references(() => organizations.id),
    version: bigint('version', { mode: 'number' }).notNull().default(1),
    publishedVersion: bigint('published_version', { mode: 'number' }).notNull().default(0),
    /** The version of which the changes feed has told; of the first there is nothing to tell. */
    toldVersion: bigint('told_version', { mode: 'number' }).notNull().default(1),
  },
  (t) => [
    unique('regions_natural_key').on(t.providerId, t.code, t.organizationId).nullsNotDistinct(),
    index('regions_dirty').on(t.id).where(sql`published_version < version`),
    index('regions_untold').on(t.id).where(sql`told_version < version`),
  ],
);

/**
 * Every machine type that a source reports, published or not. Natural key: region and name.
 *
 * What `region_id`, `source_id` and `machine_prices.machine_id` name is checked by triggers, once a statement, since a
 * foreign key looks it up once a row: see docs/decisions/0013-references-checked-by-statement.md.
 */
export const machines = pgTable(
  'machines',
  {
    id: integer('id').primaryKey().generatedByDefaultAsIdentity(),
    regionId: integer('region_id').notNull(),
    name: text('name').notNull(),
    cpu: integer('cpu').notNull(),
    /** Count of `ram_unit` units; a fraction only where `excluded_reason` says so. */
    ram: numeric('ram').notNull(),
    ramUnit: text('ram_unit', { enum: ['Binary', 'Decimal'] }).notNull(),
    price: minutePrice('price'),
    sourceAmount: amount('source_amount'),
    sourcePer: text('source_per', { enum: ['minute', 'hour', 'month'] }),
    sourceCurrency: text('source_currency'),
    /** Null when published; see domain/exclusion.ts. */
    excludedReason: text('excluded_reason'),
    sourceId: text('source_id'),
    /** Good runs in a row that did not report it. */
    missedRuns: smallint('missed_runs').notNull().default(0),
    retiredAt: instant('retired_at'),
    createdAt: instant('created_at').notNull().defaultNow(),
    /** The run that has added it; null for one of an earlier release, and for one that clusters named first. */
    addedBy: bigint('added_by', { mode: 'number' }),
    ...factColumns,
  },
  (t) => [
    unique('machines_natural_key').on(t.regionId, t.name),
    index('machines_by_source').on(t.sourceId, t.addedBy),
    // The search of the release before needs these two. A later release drops them, with `machine_names`.
    index('machines_by_shape')
      .on(t.cpu, t.ramUnit, t.ram, t.price, t.id, t.regionId, t.name)
      .where(sql`${t.retiredAt} is null and ${t.excludedReason} is null`),
    index('excluded_machines_by_shape')
      .on(t.cpu, t.ramUnit, t.ram, t.price, t.id, t.regionId, t.name)
      .where(sql`${t.retiredAt} is null and ${t.excludedReason} is not null`),
    check(
      'published_machines_are_whole_and_priced',
      sql`${t.excludedReason} is not null or (${t.ram} = trunc(${t.ram}) and coalesce(${t.price}, 0) > 0)`,
    ),
  ],
);

/** Names of machines. Only the release before reads them. A trigger adds them; a later release drops both. */
export const machineNames = pgTable(
  'machine_names',
  {
    providerId: integer('provider_id')
      .notNull()
      .references(() => providers.id, { onDelete: 'cascade' }),
    name: text('name').notNull(),
  },
  (t) => [primaryKey({ columns: [t.providerId, t.name] })],
);

/** Price history: one row for each time a source's own amount was valid. `valid_to` is null for the current one. */
export const machinePrices = pgTable(
  'machine_prices',
  {
    machineId: integer('machine_id').notNull(),
    validFrom: instant('valid_from').notNull(),
    validTo: instant('valid_to'),
    price: minutePrice('price'),
    sourceAmount: amount('source_amount').notNull(),
    sourcePer: text('source_per', { enum: ['minute', 'hour', 'month'] }).notNull(),
    sourceCurrency: text('source_currency').notNull(),
  },
  // BRIN, since rows come in the order of their times: it costs a sync next to nothing.
  (t) => [
    primaryKey({ columns: [t.machineId, t.validFrom] }),
    index('machine_prices_by_time').using('brin', t.validFrom),
  ],
);

/** The newest reference rates of the European Central Bank: units of the currency for one euro. */
export const exchangeRates = pgTable('exchange_rates', {
  currency: text('currency').primaryKey(),
  perEuro: numeric('per_euro').notNull(),
  asOf: date('as_of', { mode: 'string' }).notNull(),
});
