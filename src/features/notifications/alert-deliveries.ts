/** The messages about alerts: sends them, sends one again, and deletes old ones. */
import type { Logger } from 'pino';
import { audit } from '../../db/audit.ts';
import type { Database } from '../../db/connection/connect.ts';
import { eq, lt, sql } from '../../db/connection/drizzle.ts';
import { alerts, alertDeliveries as deliveries } from '../../db/schema.ts';
import type { Decider } from '../../domain/operator.ts';
import { type AlertMessage, bodyText, testMessage } from './alert-messages.ts';
import * as core from './deliver.ts';
import type { Webhook } from './rules.ts';
import { newMessageId, send } from './send.ts';

/** Days for which resolved alerts are stored. */
const STORED_DAYS = 90;

export interface DeliverOptions {
  readonly db: Database;
  readonly webhook: Webhook;
  readonly logger: Logger;
  readonly signal?: AbortSignal | undefined;
}

/** Sends all waiting messages in order. @returns milliseconds until the next attempt; undefined if none is due */
export function deliver({ db, webhook, logger, signal }: DeliverOptions): Promise<number | undefined> {
  return core.deliver<AlertMessage>({
    db,
    table: deliveries,
    webhook: webhook.id,
    receiver: webhook,
    bodyText: (message) => bodyText(message, webhook.format),
    onGivenUp: (error) =>
      logger.warn(
        { webhook: webhook.id, error },
        'a message about alerts is given up after three days of failed attempts',
      ),
    signal,
  });
}

/** Sends a message without an alert at once. @returns the error if the webhook does not accept it */
export async function testWebhook(
  db: Database,
  webhook: Webhook,
  decider: Decider,
): Promise<string | undefined> {
  // A webhook is called only after its row is committed.
  await audit(db, decider, { action: 'alert.test', subject: { kind: 'webhook', id: webhook.id } });
  const now = new Date();
  const body = bodyText(testMessage(now), webhook.format);
  return send(webhook, { messageId: newMessageId(), body }, now.getTime());
}

/** @returns the webhook of the copied message; undefined without such a message */
export async function sendAgain(db: Database, id: number, decider: Decider): Promise<string | undefined> {
  return db.transaction(async (tx) => {
    const [row] = await tx.select().from(deliveries).where(eq(deliveries.id, id));
    if (row === undefined) return undefined;
    const { webhook, messageId, body } = row;
    await tx.insert(deliveries).values({ webhook, messageId, body });
    const details = { webhook, message: messageId };
    await audit(tx, decider, { action: 'alert.resend', subject: { kind: 'delivery', id }, details });
    return webhook;
  });
}

export const dueWebhooks = (db: Database): Promise<string[]> => core.dueWebhooks(db, deliveries);

export async function pruneAlerts(db: Database): Promise<void> {
  await db.delete(alerts).where(lt(alerts.resolvedAt, sql`now() - make_interval(days => ${STORED_DAYS})`));
  await core.pruneMessages(db, deliveries);
}
