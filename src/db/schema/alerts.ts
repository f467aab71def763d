/** What operators are told of, and what was sent to whom. */
import { bigint, index, integer, jsonb, pgTable, sql, text, uniqueIndex } from '../drizzle.ts';
import { instant } from './columns.ts';

/** Something that is wrong for as long as `resolved_at` is null. At most one of a key is open at a time. */
export const alerts = pgTable(
  'alerts',
  {
    id: bigint('id', { mode: 'number' }).primaryKey().generatedAlwaysAsIdentity(),
    /** Kind and subject: `stale_region:hetzner/fsn1`. */
    key: text('key').notNull(),
    kind: text('kind').notNull(),
    /** What it is about, e.g. the id of a source. */
    subject: text('subject').notNull(),
    summary: text('summary').notNull(),
    details: jsonb('details').notNull(),
    openedAt: instant('opened_at').notNull().defaultNow(),
    /** When webhooks were last told that it is open; null while it may be over before anybody has to know. */
    toldAt: instant('told_at'),
    resolvedAt: instant('resolved_at'),
    resolution: text('resolution'),
    /** When an operator acknowledged it, after which no reminders are sent. */
    acknowledgedAt: instant('acknowledged_at'),
    acknowledgedBy: text('acknowledged_by'),
    acknowledgedReason: text('acknowledged_reason'),
    /** When reminders are sent again; null for an acknowledgement that lasts until the alert ends. */
    snoozedUntil: instant('snoozed_until'),
  },
  (t) => [
    uniqueIndex('one_open_alert_per_key').on(t.key).where(sql`resolved_at is null`),
    index('alerts_by_key').on(t.key),
    index('alerts_by_time').on(t.openedAt),
  ],
);

/** The messages of each webhook, in the order in which they are sent: the first that is not done comes next. */
export const alertDeliveries = pgTable(
  'alert_deliveries',
  {
    id: bigint('id', { mode: 'number' }).primaryKey().generatedAlwaysAsIdentity(),
    webhook: text('webhook').notNull(),
    /** What the receiver knows the message by; a message that is sent again by hand keeps it. */
    messageId: text('message_id').notNull(),
    body: jsonb('body').notNull(),
    createdAt: instant('created_at').notNull().defaultNow(),
    attempts: integer('attempts').notNull().default(0),
    nextAttemptAt: instant('next_attempt_at').notNull().defaultNow(),
    deliveredAt: instant('delivered_at'),
    /** When it was given up. */
    gaveUpAt: instant('gave_up_at'),
    lastError: text('last_error'),
  },
  (t) => [
    index('alert_deliveries_to_send')
      .on(t.webhook, t.id)
      .where(sql`delivered_at is null and gave_up_at is null`),
  ],
);

/** Documents that differed between the cache and the database, as a comparison last found them. */
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
