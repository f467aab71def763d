import type { Command } from 'commander';
import { reasoned, snoozedAlert } from '../../app/actions/inputs.ts';
import type { CommandContext } from '../../app/feature.ts';
import { CommandFailure, UsageFailure } from '../../cli/terminal/failure.ts';
import { openDatabase } from '../../cli/terminal/open.ts';
import {
  add,
  addChange,
  addRows,
  type Changing,
  decider,
  type PageOptions,
  pageLimit,
  REASON,
  readArguments,
  readId,
  withDecider,
} from '../../cli/terminal/options.ts';
import { ago, alignedTable, print, printJson, wrapped } from '../../cli/terminal/output.ts';
import type { Config, Environment } from '../../config/config.ts';
import { readSettings } from '../../config/settings.ts';
import { acknowledgeAlert, alertRecords } from '../../db/alerts.ts';
import { acknowledgementText } from '../../domain/alert.ts';
import { findDeliveries, sendAgain } from './messages.ts';
import { testReceiver } from './receivers.ts';
import { alertRules } from './rules.ts';

export function define(program: Command, { env, config }: CommandContext): void {
  const alert = program.command('alert').description('alerts, and the messages to webhooks');
  addRows(alert, 'list', 'show the open alerts', 'alerts')
    .option('--closed', 'also resolved alerts')
    .action((options: PageOptions & { closed?: boolean }) => alertList(env(), options));
  addRows(alert, 'deliveries', 'show the messages to webhooks', 'messages').action((options: PageOptions) =>
    alertDeliveries(env(), options),
  );
  const ALERT = ['<alert>', 'the number that `alert list` shows'] as const;
  const alertId = (id: string) => readId(id, 'alert', '`fleetbook alert list` shows');
  withDecider(add(alert, 'acknowledge', 'send no reminders of an open alert until it ends'))
    .argument(...ALERT)
    .requiredOption(...REASON)
    .action((id: string, options: Changing) => alertAcknowledge(env(), alertId(id), options));
  withDecider(add(alert, 'snooze', 'send no reminders of an open alert for some time'))
    .argument(...ALERT)
    .requiredOption('--for <span>', 'e.g. 30m, 4h or 7d; at most 30d')
    .requiredOption(...REASON)
    .action((id: string, options: Changing & { for: string }) =>
      alertAcknowledge(env(), alertId(id), options),
    );
  addChange(alert, 'resend', 'send a message again')
    .argument('<delivery>', 'the number that `alert deliveries` shows')
    .action((id: string, options: Changing) =>
      alertResend(env(), readId(id, 'delivery', '`fleetbook alert deliveries` shows'), options),
    );
  addChange(alert, 'test', 'send a test message to a webhook at once')
    .argument('<webhook>', 'its id; `default` is the webhook of ALERT_WEBHOOK_URL')
    .action(async (id: string, options: Changing) => alertTest(await config(), id, options));
}

const WIDTH = 80;

export async function alertList(
  env: Environment,
  options: PageOptions & { closed?: boolean },
): Promise<void> {
  const limit = pageLimit(options);
  await using database = openDatabase(env);
  const records = await alertRecords(database.db, { isOpenOnly: !options.closed, limit });
  if (options.json) return printJson(records);
  if (records.length === 0) return print(options.closed ? 'no alert has opened yet' : 'no alert is open');
  const now = new Date();
  for (const { id, kind, summary, openedAt, resolvedAt, resolution, acknowledgement } of records) {
    const state =
      resolvedAt === null ? `open since ${ago(openedAt, now)}` : `resolved ${ago(resolvedAt, now)}`;
    const notes = [resolution, acknowledgement && acknowledgementText(acknowledgement, now)];
    const suffix = notes.filter(Boolean).map((note) => ` (${note})`);
    print(wrapped(`${id} ${kind}, ${state}: ${summary}${suffix.join('')}`, WIDTH));
  }
}

export async function alertDeliveries(env: Environment, options: PageOptions): Promise<void> {
  const limit = pageLimit(options);
  await using database = openDatabase(env);
  const { rows: records } = await findDeliveries(database.db, { limit });
  if (options.json) return printJson(records);
  if (records.length === 0) return print('no message has been sent yet');
  const now = new Date();
  const rows = records.map(({ id, webhook, createdAt, attempts, state, nextAttemptAt, lastError, body }) => [
    String(id),
    webhook,
    (body as { type: string }).type,
    ago(createdAt, now),
    state,
    String(attempts),
    nextAttemptAt !== null && lastError !== null
      ? `${lastError}; next at ${nextAttemptAt.slice(11, 16)} UTC`
      : (lastError ?? ''),
  ]);
  print(alignedTable(['ID', 'WEBHOOK', 'TYPE', 'CREATED', 'STATE', 'ATTEMPTS', 'LAST ERROR'], rows));
}

/** Sends a message without an alert to a webhook at once, before the waiting messages. */
async function alertTest(config: Config, id: string, options: Changing): Promise<void> {
  const { webhooks } = alertRules(config);
  const webhook = webhooks.find((each) => each.id === id);
  if (!webhook) {
    const known = webhooks.map((each) => each.id).join(', ');
    throw new UsageFailure(
      `no webhook "${id}" is configured; ${known ? `give one of ${known}` : 'set ALERT_WEBHOOK_URL, or see docs/notifications.md'}`,
    );
  }
  const by = decider(config, options);
  await using store = openDatabase(config.settings.environment);
  const error = await testReceiver(store.db, webhook, by);
  if (error !== undefined) throw new CommandFailure(`webhook ${id} did not accept the message: ${error}`);
  if (options.json) printJson({ webhook: id, delivered: true });
  else print(`webhook ${id} accepted the message`);
}

async function alertResend(env: Environment, deliveryId: number, options: Changing): Promise<void> {
  const by = decider({ settings: readSettings(env) }, options);
  await using store = openDatabase(env);
  const webhook = await sendAgain(store.db, deliveryId, by);
  if (webhook === undefined)
    throw new CommandFailure(`there is no delivery ${deliveryId}; see: fleetbook alert deliveries`);
  if (options.json) printJson({ delivery: deliveryId, webhook });
  else print(`a worker sends delivery ${deliveryId} to ${webhook} again within a minute`);
}

async function alertAcknowledge(
  env: Environment,
  alertId: number,
  options: Changing & { for?: string },
): Promise<void> {
  const { reason } = readArguments(reasoned, options);
  const by = decider({ settings: readSettings(env) }, options);
  const snoozeMs = options.for === undefined ? undefined : readArguments(snoozedAlert, options).for;
  await using store = openDatabase(env);
  const done = await acknowledgeAlert(store.db, alertId, snoozeMs, { ...by, reason });
  if (done === 'unknown') throw new CommandFailure(`there is no alert ${alertId}; see: fleetbook alert list`);
  if (done === 'over')
    throw new CommandFailure(`alert ${alertId} is resolved, so there is nothing to acknowledge`);
  const { kind, subject, acknowledgement } = done;
  if (options.json) printJson({ alert: alertId, kind, subject, acknowledgement });
  else print(`alert ${alertId} ${kind} ${subject} is ${acknowledgementText(acknowledgement, new Date())}`);
}
