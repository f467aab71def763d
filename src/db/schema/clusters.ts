import { CREATION_REASONS } from '../../domain/prices/creation-price.ts';
import { foreignKey, index, pgTable, primaryKey, sql, unique, uniqueIndex } from '../connection/drizzle.ts';
import { machines, regions } from './catalogue.ts';
import { organizations, users } from './organizations.ts';
import { bytes, instant, minutePrice, reference, statedPrice } from './shared-columns.ts';
import { ofSource } from './sources.ts';

/** A disk type of one organization in one region. Another price is another row. */
export const diskTypes = pgTable(
  'disk_types',
  (c) => ({
    id: c.integer('id').primaryKey().generatedByDefaultAsIdentity(),
    organizationId: reference('organization_id', () => organizations.id),
    regionId: reference('region_id', () => regions.id),
    name: c.text('name').notNull(),
    unit: c.text('unit', { enum: ['Binary', 'Decimal'] }).notNull(),
    price: minutePrice('price').notNull(),
    ...statedPrice,
  }),
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
  (c) => ({
    id: c.integer('id').primaryKey().generatedByDefaultAsIdentity(),
    organizationId: reference('organization_id', () => organizations.id),
    sourceId: ofSource(),
    sourceKey: c.text('source_key').notNull(),
    /** SHA-256 of the reported cluster. A run skips a cluster with the same hash. Empty: do not skip. */
    sourceHash: bytes('source_hash').notNull(),
    slug: c.text('slug').notNull(),
    name: c.text('name').notNull(),
    regionId: reference('region_id', () => regions.id),
    machineId: reference('machine_id', () => machines.id),
    userId: c.integer('user_id').notNull(),
    status: c.text('status').notNull(),
    shards: c.integer('shards').notNull(),
    replicas: c.integer('replicas').notNull(),
    /** A word of the vocabulary in domain/engine.ts, else the source's own; null: unknown, like the next two. */
    engine: c.text('engine'),
    version: c.text('version'),
    /** The end of this version's support that the source itself states. */
    endOfLife: c.date('end_of_life', { mode: 'string' }),
    createdAt: c.timestamp('created_at', { withTimezone: false, precision: 6, mode: 'string' }).notNull(),
    /** Since when it has its machine: since its creation, or a change of the machine. Never in the future. */
    machineSince: instant('machine_since').notNull().defaultNow(),
    /** The list price of its machine on demand at `creation_as_of`, and the monthly cap. See docs/decisions/0103. */
    creationPrice: minutePrice('creation_price'),
    creationCap: c.numeric('creation_cap'),
    creationAsOf: instant('creation_as_of'),
    /** Why the price is not known. */
    creationReason: c.text('creation_reason', { enum: CREATION_REASONS }),
    missedRuns: c.smallint('missed_runs').notNull().default(0),
    retiredAt: instant('retired_at'),
    /** The run that added it. */
    addedBy: c.bigint('added_by', { mode: 'number' }).notNull(),
  }),
  (t) => [
    unique('clusters_natural_key').on(t.sourceId, t.organizationId, t.sourceKey),
    uniqueIndex('clusters_slug').on(t.organizationId, t.slug).where(sql`retired_at is null`),
    unique('clusters_of_organization').on(t.organizationId, t.id),
    index('clusters_by_machine').on(t.machineId),
    index('clusters_by_region').on(t.regionId),
    index('clusters_by_run').on(t.addedBy),
    foreignKey({ columns: [t.organizationId, t.userId], foreignColumns: [users.organizationId, users.id] }),
  ],
);

export const disks = pgTable(
  'disks',
  (c) => ({
    organizationId: c.integer('organization_id').notNull(),
    clusterId: c.integer('cluster_id').notNull(),
    position: c.smallint('position').notNull(),
    diskTypeId: c.integer('disk_type_id').notNull(),
    size: c.doublePrecision('size').notNull(),
    unit: c.text('unit', { enum: ['GB', 'TB', 'GiB', 'TiB'] }).notNull(),
    autoscaling: c.boolean('autoscaling').notNull(),
  }),
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
