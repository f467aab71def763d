import { post } from '../alerts/deliver.ts';
import { newMessageId } from '../alerts/evaluate.ts';
import { testMessage } from '../alerts/message.ts';
import type { Environment } from '../config/config.ts';
import { readConfig } from '../config/config.ts';
import { readSettings } from '../config/settings.ts';
import { acknowledgeAlert } from '../db/queries/acknowledge.ts';
import { sendAgain } from '../db/queries/alerts.ts';
import { audit } from '../db/queries/audit.ts';
import { acknowledgementText, SNOOZE_FORMS, snoozeSpan } from '../domain/acknowledgement.ts';
import { type DeciderOptions, decider } from './arguments.ts';
import { CommandFailure, UsageFailure } from './failure.ts';
import { openStoreOnly } from './open-store.ts';
import { print, printJson } from './print.ts';

/** Sends a message without any alert to a webhook, at once and past those that wait. */
export async function alertTest(
  env: Environment,
  id: string,
  options: DeciderOptions & { json?: boolean },
): Promise<void> {
  const config = readConfig(env);
  const { webhooks } = config.alerts;
  const webhook = webhooks.find((each) => each.id === id);
  if (!webhook) {
    const known = webhooks.map((each) => each.id).join(', ');
    throw new UsageFailure(
      `no webhook "${id}" is configured; ${known ? `give one of ${known}` : 'set ALERT_WEBHOOK_URL, or see docs/alerts.md'}`,
    );
  }
  const by = decider(config, options);
  await using store = openStoreOnly(env);
  // No transaction reaches a receiver: none hears of anything without its row.
  await audit(store.db, by, { action: 'alert.test', subject: { kind: 'webhook', id } });
  const now = new Date();
  const error = await post(webhook, newMessageId(), testMessage(now), now.getTime());
  if (error !== undefined) throw new CommandFailure(`webhook ${id} did not take the message: ${error}`);
  if (options.json) printJson({ webhook: id, delivered: true });
  else print(`webhook ${id} took the message`);
}

/** Puts a message at the end of its webhook's line once more. */
export async function alertResend(
  env: Environment,
  deliveryId: number,
  options: DeciderOptions & { json?: boolean },
): Promise<void> {
  const by = decider({ settings: readSettings(env) }, options);
  await using store = openStoreOnly(env);
  const webhook = await sendAgain(store.db, deliveryId, by);
  if (webhook === undefined)
    throw new CommandFailure(`there is no delivery ${deliveryId}; see: fleetbook alert deliveries`);
  if (options.json) printJson({ delivery: deliveryId, webhook });
  else print(`delivery ${deliveryId} is sent again to ${webhook} by a worker, within a minute`);
}

/** Acknowledges an open alert; with `for` until that time has passed. */
export async function alertAcknowledge(
  env: Environment,
  alertId: number,
  options: DeciderOptions & { for?: string; json?: boolean },
): Promise<void> {
  const { reason, ...by } = decider({ settings: readSettings(env) }, options);
  if (reason === undefined) throw new UsageFailure('--reason is missing; say why, for the record');
  const snoozeMs = options.for === undefined ? undefined : snoozeSpan(options.for);
  if (options.for !== undefined && snoozeMs === undefined)
    throw new UsageFailure(`--for must be ${SNOOZE_FORMS}; it is "${options.for}"`);
  await using store = openStoreOnly(env);
  const done = await acknowledgeAlert(store.db, alertId, snoozeMs, { ...by, reason });
  if (done.outcome === 'unknown')
    throw new CommandFailure(`there is no alert ${alertId}; see: fleetbook alert list`);
  if (done.outcome === 'over') throw new CommandFailure(`alert ${alertId} is over`);
  const { kind, subject, acknowledgement } = done;
  if (options.json) printJson({ alert: alertId, kind, subject, acknowledgement });
  else print(`alert ${alertId} ${kind} ${subject} is ${acknowledgementText(acknowledgement, new Date())}`);
}
