/**
 * The database as Drizzle sees it. Roles, grants, row-level security and functions are in
 * `drizzle/0001_roles_and_row_security.sql`, since drizzle-kit emits neither FORCE nor grants.
 */
import { sql } from 'drizzle-orm';
import {
  bigint,
  boolean,
  check,
  customType,
  date,
  doublePrecision,
  foreignKey,
  index,
  integer,
  jsonb,
  numeric,
  pgTable,
  primaryKey,
  smallint,
  text,
  timestamp,
  unique,
  uniqueIndex,
  uuid,
} from 'drizzle-orm/pg-core';

const bytes = customType<{ data: Buffer; driverData: Buffer }>({ dataType: () => 'bytea' });
/** Read as text: a JavaScript Date would drop the microseconds. */
const instant = (name: string) => timestamp(name, { withTimezone: true, precision: 6, mode: 'string' });
const amount = (name: string) => numeric(name);
/** Per minute, in the published currency. */
const minutePrice = (name: string) => numeric(name, { precision: 38, scale: 18 });

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
    /** Set by the first use: a database of the sample never takes live data, nor the other way round. */
    content: text('content', { enum: ['sample', 'live'] }),
    providersVersion: bigint('providers_version', { mode: 'number' }).notNull().default(1),
    providersPublishedVersion: bigint('providers_published_version', { mode: 'number' }).notNull().default(0),
  },
  (t) => [check('lineage_has_one_row', sql`${t.singleton}`)],
);

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
  },
  (t) => [
    unique('regions_natural_key').on(t.providerId, t.code, t.organizationId).nullsNotDistinct(),
    index('regions_dirty').on(t.id).where(sql`published_version < version`),
  ],
);

/** A configured instance of an adapter. `fence` rises at every start of a run; only its holder may write. */
export const sources = pgTable('sources', {
  id: text('id').primaryKey(),
  kind: text('kind', { enum: ['catalogue', 'clusters', 'rates'] }).notNull(),
  adapter: text('adapter').notNull(),
  fence: bigint('fence', { mode: 'number' }).notNull().default(0),
  /** When its data was last read whole and found good; readers see it as `Fleetbook-As-Of`. */
  verifiedAt: instant('verified_at'),
});

/**
 * The versions of its documents that a source's stored rows come from: written with those rows and with nothing else.
 * Under another `reading` (a hash of what turns a document into rows) they say nothing.
 */
export const sourceValidators = pgTable(
  'source_validators',
  {
    sourceId: text('source_id')
      .notNull()
      .references(() => sources.id),
    url: text('url').notNull(),
    etag: text('etag'),
    lastModified: text('last_modified'),
    reading: text('reading').notNull(),
  },
  (t) => [primaryKey({ columns: [t.sourceId, t.url] })],
);

/** The newest reference rates of the European Central Bank: units of the currency for one euro. */
export const exchangeRates = pgTable('exchange_rates', {
  currency: text('currency').primaryKey(),
  perEuro: numeric('per_euro').notNull(),
  asOf: date('as_of', { mode: 'string' }).notNull(),
});

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
  },
  (t) => [
    unique('machines_natural_key').on(t.regionId, t.name),
    index('machines_by_source').on(t.sourceId),
    check(
      'published_machines_are_whole_and_priced',
      sql`${t.excludedReason} is not null or (${t.ram} = trunc(${t.ram}) and coalesce(${t.price}, 0) > 0)`,
    ),
  ],
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
  (t) => [primaryKey({ columns: [t.machineId, t.validFrom] })],
);

export const organizations = pgTable(
  'organizations',
  {
    id: integer('id').primaryKey().generatedByDefaultAsIdentity(),
    slug: text('slug').notNull().unique(),
    name: text('name').notNull(),
    clustersVersion: bigint('clusters_version', { mode: 'number' }).notNull().default(1),
    publishedVersion: bigint('published_version', { mode: 'number' }).notNull().default(0),
    createdAt: instant('created_at').notNull().defaultNow(),
    /** A tombstone: nothing of a deleted organization is served. */
    deletedAt: instant('deleted_at'),
  },
  (t) => [index('organizations_dirty').on(t.id).where(sql`published_version < clusters_version`)],
);

/**
 * People who created clusters, by the names that control planes give them. One whom an operator renamed or deleted
 * stays, so that the name is known when a control plane says it again, and `replaced_by` says who is shown instead:
 * for a deleted one, the organization's person of two empty names. A trigger keeps clusters from naming the replaced.
 */
export const users = pgTable(
  'users',
  {
    id: integer('id').primaryKey().generatedByDefaultAsIdentity(),
    organizationId: integer('organization_id')
      .notNull()
      .references(() => organizations.id),
    firstName: text('first_name').notNull(),
    lastName: text('last_name').notNull(),
    replacedBy: integer('replaced_by'),
  },
  (t) => [
    unique('users_natural_key').on(t.organizationId, t.firstName, t.lastName),
    unique('users_of_organization').on(t.organizationId, t.id),
    index('users_replaced').on(t.replacedBy).where(sql`replaced_by is not null`),
    foreignKey({ columns: [t.organizationId, t.replacedBy], foreignColumns: [t.organizationId, t.id] }),
    check('users_replace_others', sql`${t.replacedBy} <> ${t.id}`),
  ],
);

/** A disk type as one organization pays for it in one region. The price is part of what it is: two prices, two rows. */
export const diskTypes = pgTable(
  'disk_types',
  {
    id: integer('id').primaryKey().generatedByDefaultAsIdentity(),
    organizationId: integer('organization_id')
      .notNull()
      .references(() => organizations.id),
    regionId: integer('region_id')
      .notNull()
      .references(() => regions.id),
    name: text('name').notNull(),
    unit: text('unit', { enum: ['Binary', 'Decimal'] }).notNull(),
    price: minutePrice('price').notNull(),
    sourceAmount: amount('source_amount').notNull(),
    sourcePer: text('source_per', { enum: ['minute', 'hour', 'month'] }).notNull(),
    sourceCurrency: text('source_currency').notNull(),
  },
  (t) => [
    unique('disk_types_natural_key').on(
      t.organizationId,
      t.regionId,
      t.name,
      t.unit,
      t.sourceAmount,
      t.sourcePer,
      t.sourceCurrency,
    ),
    unique('disk_types_of_organization').on(t.organizationId, t.id),
  ],
);

export const clusters = pgTable(
  'clusters',
  {
    id: integer('id').primaryKey().generatedByDefaultAsIdentity(),
    organizationId: integer('organization_id')
      .notNull()
      .references(() => organizations.id),
    sourceId: text('source_id')
      .notNull()
      .references(() => sources.id),
    /** What identifies the cluster at its source. */
    sourceKey: text('source_key').notNull(),
    /** SHA-256 of what the source reported: equal means that nothing has to be looked at. */
    sourceHash: bytes('source_hash').notNull(),
    slug: text('slug').notNull(),
    name: text('name').notNull(),
    regionId: integer('region_id')
      .notNull()
      .references(() => regions.id),
    machineId: integer('machine_id')
      .notNull()
      .references(() => machines.id),
    userId: integer('user_id').notNull(),
    status: text('status').notNull(),
    shards: integer('shards').notNull(),
    replicas: integer('replicas').notNull(),
    createdAt: timestamp('created_at', { withTimezone: false, precision: 6, mode: 'string' }).notNull(),
    missedRuns: smallint('missed_runs').notNull().default(0),
    retiredAt: instant('retired_at'),
  },
  (t) => [
    unique('clusters_natural_key').on(t.sourceId, t.organizationId, t.sourceKey),
    uniqueIndex('clusters_slug').on(t.organizationId, t.slug).where(sql`retired_at is null`),
    unique('clusters_of_organization').on(t.organizationId, t.id),
    index('clusters_by_machine').on(t.machineId),
    index('clusters_by_region').on(t.regionId),
    // The creator is one of the same organization's people: the database itself refuses to cross the border.
    foreignKey({ columns: [t.organizationId, t.userId], foreignColumns: [users.organizationId, users.id] }),
  ],
);

export const disks = pgTable(
  'disks',
  {
    organizationId: integer('organization_id').notNull(),
    clusterId: integer('cluster_id').notNull(),
    /** Order inside the cluster, from 0. */
    position: smallint('position').notNull(),
    diskTypeId: integer('disk_type_id').notNull(),
    size: doublePrecision('size').notNull(),
    unit: text('unit', { enum: ['GB', 'TB', 'GiB', 'TiB'] }).notNull(),
    autoscaling: boolean('autoscaling').notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.organizationId, t.clusterId, t.position] }),
    foreignKey({
      columns: [t.organizationId, t.clusterId],
      foreignColumns: [clusters.organizationId, clusters.id],
    }).onDelete('cascade'),
    foreignKey({
      columns: [t.organizationId, t.diskTypeId],
      foreignColumns: [diskTypes.organizationId, diskTypes.id],
    }),
  ],
);

/** API tokens; only the SHA-256 is kept. `version` rises with every change, so that a revocation outranks a copy. */
export const tokens = pgTable(
  'tokens',
  {
    id: integer('id').primaryKey().generatedByDefaultAsIdentity(),
    organizationId: integer('organization_id')
      .notNull()
      .references(() => organizations.id),
    hash: bytes('hash').notNull().unique(),
    scopes: text('scopes').array().notNull(),
    createdAt: instant('created_at').notNull().defaultNow(),
    expiresAt: instant('expires_at'),
    revokedAt: instant('revoked_at'),
    lastUsedAt: instant('last_used_at'),
    version: bigint('version', { mode: 'number' }).notNull().default(1),
    publishedVersion: bigint('published_version', { mode: 'number' }).notNull().default(0),
  },
  (t) => [
    index('tokens_by_organization').on(t.organizationId),
    index('tokens_dirty').on(t.id).where(sql`published_version < version`),
  ],
);

export const syncRuns = pgTable(
  'sync_runs',
  {
    id: bigint('id', { mode: 'number' }).primaryKey().generatedAlwaysAsIdentity(),
    sourceId: text('source_id')
      .notNull()
      .references(() => sources.id),
    fence: bigint('fence', { mode: 'number' }).notNull(),
    /** The schedule's slot that asked for it; null for a run by hand. */
    slot: instant('slot'),
    startedAt: instant('started_at').notNull().defaultNow(),
    finishedAt: instant('finished_at'),
    seen: integer('seen'),
    added: integer('added'),
    changed: integer('changed'),
    retired: integer('retired'),
    rejected: integer('rejected'),
    outcome: text('outcome', { enum: ['running', 'changed', 'unchanged', 'held', 'failed', 'superseded'] })
      .notNull()
      .default('running'),
    error: text('error'),
  },
  (t) => [index('sync_runs_by_source').on(t.sourceId, t.id)],
);

/** A batch that broke a guard, kept for an operator's decision. At most one is pending for each source. */
export const heldBatches = pgTable(
  'held_batches',
  {
    id: integer('id').primaryKey().generatedAlwaysAsIdentity(),
    sourceId: text('source_id')
      .notNull()
      .references(() => sources.id),
    runId: bigint('run_id', { mode: 'number' })
      .notNull()
      .references(() => syncRuns.id),
    /** The guards that it broke: `[{guard, limit, found, detail}]`. */
    broken: jsonb('broken').notNull(),
    status: text('status', { enum: ['pending', 'approved', 'rejected', 'superseded'] })
      .notNull()
      .default('pending'),
    createdAt: instant('created_at').notNull().defaultNow(),
    decidedAt: instant('decided_at'),
  },
  (t) => [uniqueIndex('one_pending_batch_per_source').on(t.sourceId).where(sql`status = 'pending'`)],
);

/** What a held batch consists of: the adapter's items, one a row. Deleted with the decision. */
export const heldItems = pgTable(
  'held_items',
  {
    batchId: integer('batch_id')
      .notNull()
      .references(() => heldBatches.id, { onDelete: 'cascade' }),
    position: integer('position').notNull(),
    item: jsonb('item').notNull(),
  },
  (t) => [primaryKey({ columns: [t.batchId, t.position] })],
);

/** Rows that the last good run of a source could not use: current state, not a log. */
export const quarantinedRows = pgTable(
  'quarantined_rows',
  {
    sourceId: text('source_id')
      .notNull()
      .references(() => sources.id),
    rowKey: text('row_key').notNull(),
    reason: text('reason').notNull(),
    firstSeenAt: instant('first_seen_at').notNull().defaultNow(),
  },
  (t) => [primaryKey({ columns: [t.sourceId, t.rowKey] })],
);

/** One row for each slot of a schedule that some worker claimed; a slot without `enqueued_at` is picked up again. */
export const scheduleSlots = pgTable(
  'schedule_slots',
  {
    schedule: text('schedule').notNull(),
    slot: instant('slot').notNull(),
    claimedAt: instant('claimed_at').notNull().defaultNow(),
    enqueuedAt: instant('enqueued_at'),
  },
  (t) => [
    primaryKey({ columns: [t.schedule, t.slot] }),
    index('schedule_slots_not_enqueued').on(t.claimedAt).where(sql`enqueued_at is null`),
  ],
);
