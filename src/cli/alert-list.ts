import type { Environment } from '../config/source-config.ts';
import { alertRecords, deliveryRecords } from '../db/reads/alerts.ts';
import { acknowledgementText } from '../domain/acknowledgement.ts';
import { type PageOptions, pageLimit } from './arguments.ts';
import { openReadOnly } from './open-read-only.ts';
import { print, printJson, printText } from './print.ts';
import { ago, alignedTable, wrapped } from './table.ts';

const WIDTH = 80;

/** Open alerts; with `closed` also those that are resolved. */
export async function alertList(
  env: Environment,
  options: PageOptions & { closed?: boolean },
): Promise<void> {
  const limit = pageLimit(options);
  await using register = openReadOnly(env);
  const records = await alertRecords(register.sql, { isOpenOnly: !options.closed, limit });
  if (options.json) return printJson(records);
  if (records.length === 0) return print(options.closed ? 'there never was an alert' : 'no alert is open');
  const now = new Date();
  for (const { id, kind, summary, openedAt, resolvedAt, resolution, acknowledgement } of records) {
    const state =
      resolvedAt === null ? `open since ${ago(openedAt, now)}` : `resolved ${ago(resolvedAt, now)}`;
    const notes = [resolution, acknowledgement && acknowledgementText(acknowledgement, now)];
    const told = notes.filter(Boolean).map((note) => ` (${note})`);
    printText(wrapped(`${id} ${kind}, ${state}: ${summary}${told.join('')}`, WIDTH));
  }
}

/** What was sent to webhooks, the newest first. */
export async function alertDeliveries(env: Environment, options: PageOptions): Promise<void> {
  const limit = pageLimit(options);
  await using register = openReadOnly(env);
  const records = await deliveryRecords(register.sql, limit);
  if (options.json) return printJson(records);
  if (records.length === 0) return print('nothing was ever sent');
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
  printText(alignedTable(['ID', 'WEBHOOK', 'TYPE', 'MADE', 'STATE', 'TRIES', 'LAST ERROR'], rows));
}
