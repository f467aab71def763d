import { index, pgTable, sql, uniqueIndex } from '../connection/drizzle.ts';
import { IS_WAITING, instant, messageColumns } from './shared-columns.ts';

/** An alert is open while `resolved_at` is null. A key has at most one open alert. */
export const alerts = pgTable(
  'alerts',
  (c) => ({
    id: c.bigint('id', { mode: 'number' }).primaryKey().generatedAlwaysAsIdentity(),
    /** Kind and subject: `stale_region:hetzner/fsn1`. */
    key: c.text('key').notNull(),
    kind: c.text('kind').notNull(),
    subject: c.text('subject').notNull(),
    summary: c.text('summary').notNull(),
    details: c.jsonb('details').notNull(),
    openedAt: instant('opened_at').notNull().defaultNow(),
    /** When webhooks last received it. Null before: a condition that ends soon causes no message. */
    notifiedAt: instant('told_at'),
    resolvedAt: instant('resolved_at'),
    resolution: c.text('resolution'),
    acknowledgedAt: instant('acknowledged_at'),
    acknowledgedBy: c.text('acknowledged_by'),
    acknowledgedReason: c.text('acknowledged_reason'),
    /** When reminders start again. Null: never. */
    snoozedUntil: instant('snoozed_until'),
  }),
  (t) => [
    uniqueIndex('one_open_alert_per_key').on(t.key).where(sql`resolved_at is null`),
    index('alerts_by_key').on(t.key),
    index('alerts_by_time').on(t.openedAt),
  ],
);

/** Messages to the operators' webhooks. */
export const alertDeliveries = pgTable(
  'alert_deliveries',
  (c) => ({ ...messageColumns, webhook: c.text('webhook').notNull() }),
  (t) => [index('alert_deliveries_to_send').on(t.webhook, t.id).where(IS_WAITING)],
);
