/** What organizations run. What they run it on is in catalogue.ts. */
import {
  bigint,
  boolean,
  doublePrecision,
  foreignKey,
  index,
  integer,
  pgTable,
  primaryKey,
  smallint,
  sql,
  text,
  timestamp,
  unique,
  uniqueIndex,
} from '../connection/drizzle.ts';
import { machines, regions } from './catalogue.ts';
import { amount, bytes, instant, minutePrice } from './columns.ts';
import { organizations, users } from './organizations.ts';
import { sources } from './sources.ts';

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
    /** The run that has added it; null for one of an earlier release. */
    addedBy: bigint('added_by', { mode: 'number' }),
  },
  (t) => [
    unique('clusters_natural_key').on(t.sourceId, t.organizationId, t.sourceKey),
    uniqueIndex('clusters_slug').on(t.organizationId, t.slug).where(sql`retired_at is null`),
    unique('clusters_of_organization').on(t.organizationId, t.id),
    index('clusters_by_machine').on(t.machineId),
    index('clusters_by_region').on(t.regionId),
    index('clusters_by_run').on(t.addedBy),
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
