import { check, index, pgTable, sql, uniqueIndex } from '../connection/drizzle.ts';
import { organizations } from './organizations.ts';
import { bytes, instant, reference } from './shared-columns.ts';

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
    /** When receivers last got it. Null before: a condition that ends soon causes no message. */
    notifiedAt: instant('notified_at'),
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

export const WEBHOOK_EVENTS = ['clusters', 'prices', 'savings', 'stock', 'restocked', 'lifecycle'] as const;

/** The state that the last messages of a webhook reached. */
export interface SeenState {
  /** Price of each machine that the clusters use, as its source states it: machine id to `0.06 EUR/hour`. */
  readonly prices?: Readonly<Record<string, string>>;
  /** The last run that flipped the stock of a source; 0 for none. */
  readonly stock?: number;
  /** Clusters whose version has ended or ends soon: id, state and day. */
  readonly lifecycle?: readonly string[];
  /** Whether each named machine could be ordered, by its id. */
  readonly restocked?: Readonly<Record<string, boolean>>;
  /** The clusters whose saving is above the threshold. `mark` changes with their prices. */
  readonly savings?: { readonly mark: string; readonly clusters: readonly number[] };
}

/** Webhooks of organizations. Readers have no access: the rows hold signing secrets. */
export const organizationWebhooks = pgTable(
  'organization_webhooks',
  (c) => ({
    id: c.integer('id').primaryKey().generatedByDefaultAsIdentity(),
    organizationId: reference('organization_id', () => organizations.id),
    /** May contain a secret, so only its origin is shown. */
    url: c.text('url').notNull(),
    secret: bytes('secret').notNull(),
    events: c.text('events', { enum: WEBHOOK_EVENTS }).array().notNull(),
    /** The smallest saving of a cluster that is an event, per month in the published currency. */
    threshold: c.numeric('threshold'),
    /** The machines of the event `restocked`. */
    machineIds: c.integer('machine_ids').array(),
    /** The position of the changes feed whose changes of clusters are in messages. */
    position: c.bigint('position', { mode: 'number' }).notNull(),
    /** Null until the first check, which informs of nothing. */
    seen: c.jsonb('seen').$type<SeenState>(),
    createdAt: instant('created_at').notNull().defaultNow(),
  }),
  (t) => [index('organization_webhooks_by_organization').on(t.organizationId)],
);

/** A message has one recipient, which receives its messages in the order of their ids. */
export const messages = pgTable(
  'messages',
  (c) => ({
    id: c.bigint('id', { mode: 'number' }).primaryKey().generatedAlwaysAsIdentity(),
    /** The webhook of an organization that receives it; null for a message to operators. */
    webhook: c.integer('webhook').references(() => organizationWebhooks.id, { onDelete: 'cascade' }),
    /** The configured id of the operators' receiver; null for a message to an organization. */
    receiver: c.text('receiver'),
    /** The recipient's id of the message. A message that an operator sends again keeps it. */
    messageId: c.text('message_id').notNull(),
    body: c.jsonb('body').notNull(),
    createdAt: instant('created_at').notNull().defaultNow(),
    /** The only state of retries. */
    attempts: c.integer('attempts').notNull().default(0),
    nextAttemptAt: instant('next_attempt_at').notNull().defaultNow(),
    deliveredAt: instant('delivered_at'),
    gaveUpAt: instant('gave_up_at'),
    lastError: c.text('last_error'),
  }),
  (t) => [
    check('one_recipient', sql`num_nonnulls(webhook, receiver) = 1`),
    index('messages_to_send')
      .on(t.webhook, t.receiver, t.id)
      .where(sql`delivered_at is null and gave_up_at is null`),
    index('messages_by_webhook').on(t.webhook, t.id),
    index('messages_to_operators').on(t.id).where(sql`webhook is null`),
  ],
);
