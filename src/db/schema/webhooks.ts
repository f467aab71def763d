import { index, pgTable } from '../connection/drizzle.ts';
import { organizations } from './organizations.ts';
import { bytes, IS_WAITING, instant, messageColumns, reference } from './shared-columns.ts';

export const WEBHOOK_EVENTS = ['clusters', 'prices', 'savings', 'stock'] as const;

/** The state that the last messages of a webhook reached. */
export interface SeenState {
  /** Price of each machine that the clusters use, as its source states it: machine id to `0.06 EUR/hour`. */
  readonly prices?: Readonly<Record<string, string>>;
  /** The last run that flipped the stock of a source; 0 for none. */
  readonly stock?: number;
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
    /** The position of the changes feed whose changes of clusters are in messages. */
    position: c.bigint('position', { mode: 'number' }).notNull(),
    /** Null until the first check, which informs of nothing. */
    seen: c.jsonb('seen').$type<SeenState>(),
    createdAt: instant('created_at').notNull().defaultNow(),
  }),
  (t) => [index('organization_webhooks_by_organization').on(t.organizationId)],
);

export const webhookMessages = pgTable(
  'webhook_messages',
  (c) => ({
    ...messageColumns,
    webhook: c
      .integer('webhook')
      .notNull()
      .references(() => organizationWebhooks.id, { onDelete: 'cascade' }),
  }),
  (t) => [
    index('webhook_messages_to_send').on(t.webhook, t.id).where(IS_WAITING),
    index('webhook_messages_by_webhook').on(t.webhook, t.id),
  ],
);
