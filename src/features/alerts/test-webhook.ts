import { audit } from '../../db/audit.ts';
import type { Database } from '../../db/connection/database.ts';
import type { Decider } from '../../domain/operator.ts';
import { post } from './deliver.ts';
import { newMessageId } from './evaluate.ts';
import { testMessage } from './message.ts';
import type { Webhook } from './rules.ts';

/** Sends a message without an alert. @returns why the webhook did not accept it; undefined when it did */
export async function testWebhook(
  db: Database,
  webhook: Webhook,
  decider: Decider,
): Promise<string | undefined> {
  // A webhook is called only after its row is committed.
  await audit(db, decider, { action: 'alert.test', subject: { kind: 'webhook', id: webhook.id } });
  const now = new Date();
  return post(webhook, newMessageId(), testMessage(now), now.getTime());
}
