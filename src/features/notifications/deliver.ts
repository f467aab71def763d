/** Sends the stored messages of receivers, oldest first, and stores the result of each attempt. */
import type { Database } from '../../db/connection/connect.ts';
import { sql } from '../../db/connection/drizzle.ts';
import { nameOf, type RowOf } from '../../db/connection/statements.ts';
import type { alertDeliveries, webhookMessages } from '../../db/schema.ts';
import { type OutgoingMessage, type Receiver, send } from './send.ts';

const FIRST_PAUSE_MS = 15_000;
const LONGEST_PAUSE_MS = 15 * 60_000;
/** The age at which a message gets its last attempt. */
const GIVE_UP_AFTER_MS = 3 * 24 * 3_600_000;
/** Days for which finished messages are stored. */
const STORED_DAYS = 90;
/** Time that an attempt has alone. Afterwards another worker may send the message: the first one has died. */
const LEASE_SECONDS = 60;

export type MessageTable = typeof alertDeliveries | typeof webhookMessages;

export interface DeliverOptions<Body> {
  readonly db: Database;
  readonly table: MessageTable;
  readonly webhook: string | number;
  readonly receiver: Receiver;
  readonly bodyText: (body: Body) => string;
  /** Receives the error of a message's last attempt. */
  readonly onGivenUp: (error: string) => void;
  /** Returns milliseconds since the epoch. */
  readonly now?: (() => number) | undefined;
  readonly signal?: AbortSignal | undefined;
}

interface ClaimedMessage {
  readonly id: string;
  readonly messageId: string;
  readonly body: unknown;
  readonly attempts: number;
  readonly createdAt: string;
}

interface FailedAttempt {
  readonly error: string;
  readonly pauseMs: number;
  readonly isLast: boolean;
}

const isWaiting = ({ deliveredAt, gaveUpAt }: MessageTable) =>
  sql`${deliveredAt} is null and ${gaveUpAt} is null`;

/** Sends all waiting messages in order. @returns milliseconds until the next attempt; undefined if none is due */
export async function deliver<Body>(options: DeliverOptions<Body>): Promise<number | undefined> {
  for (;;) {
    const claimed = await claimNext(options);
    if (claimed === undefined) return undefined;
    const message = { messageId: claimed.messageId, body: options.bodyText(claimed.body as Body) };
    const result = await attempt(options, claimed, message);
    if (result === 'stopped') return undefined;
    if (result === 'delivered') continue;
    if (!result.isLast) return result.pauseMs;
    options.onGivenUp(result.error);
  }
}

/** Takes the oldest waiting message for one attempt. A later message waits for it, so the order is kept. */
async function claimNext({
  db,
  table,
  webhook,
}: Pick<DeliverOptions<unknown>, 'db' | 'table' | 'webhook'>): Promise<ClaimedMessage | undefined> {
  const { id, messageId, body, attempts, nextAttemptAt, createdAt } = table;
  // No transaction waits for the receiver: a slow receiver must not occupy a connection of the worker.
  const [row] = await db.execute<RowOf<ClaimedMessage>>(sql`
    update ${table} set ${nameOf(attempts)} = ${attempts} + 1,
      ${nameOf(nextAttemptAt)} = now() + make_interval(secs => ${LEASE_SECONDS})
    where ${nextAttemptAt} <= now() and ${isWaiting(table)} and ${id} = (
      select oldest.id from ${table} oldest
      where oldest.webhook = ${webhook} and oldest.delivered_at is null and oldest.gave_up_at is null
      order by oldest.id limit 1)
    returning ${id}::text as id, ${messageId} as "messageId", ${body} as body, ${attempts} as attempts,
      ${createdAt} as "createdAt"`);
  return row;
}

async function attempt<Body>(
  { db, table, receiver, now = Date.now, signal }: DeliverOptions<Body>,
  { id, attempts, createdAt }: ClaimedMessage,
  message: OutgoingMessage,
): Promise<FailedAttempt | 'delivered' | 'stopped'> {
  const error = await send(receiver, message, now(), signal);
  // A worker that was frozen for longer than its lease may end after another worker's attempt, which counts then.
  const isOwn = sql`${table.id} = ${id} and ${table.attempts} = ${attempts} and ${isWaiting(table)}`;
  if (error === undefined) {
    await db.execute(sql`
      update ${table} set ${nameOf(table.deliveredAt)} = now(), ${nameOf(table.lastError)} = null
      where ${table.id} = ${id}`);
    return 'delivered';
  }
  // The worker stops: its own end is no failure of the receiver.
  if (signal?.aborted) {
    await db.execute(sql`
      update ${table} set ${nameOf(table.attempts)} = ${table.attempts} - 1, ${nameOf(table.nextAttemptAt)} = now()
      where ${isOwn}`);
    return 'stopped';
  }
  const pauseMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(attempts - 1, 20));
  const isLast = now() - Date.parse(createdAt) > GIVE_UP_AFTER_MS;
  await db.execute(sql`
    update ${table} set ${nameOf(table.lastError)} = ${error},
      ${nameOf(table.nextAttemptAt)} = now() + make_interval(secs => ${pauseMs / 1000}),
      ${nameOf(table.gaveUpAt)} = case when ${isLast} then now() end
    where ${isOwn}`);
  return { error, pauseMs, isLast };
}

/** Returns the receivers whose oldest waiting message is due. */
export async function dueWebhooks(db: Database, table: MessageTable): Promise<string[]> {
  const rows = await db.execute<{ webhook: string }>(sql`
    select next.webhook::text from (
      select distinct on (${table.webhook}) ${table.webhook} as webhook, ${table.nextAttemptAt} as at
      from ${table} where ${isWaiting(table)} order by ${table.webhook}, ${table.id}
    ) next where next.at <= now()`);
  return rows.map(({ webhook }) => webhook);
}

/** Deletes messages that were delivered or given up long ago. */
export async function pruneMessages(db: Database, table: MessageTable): Promise<void> {
  await db.execute(sql`
    delete from ${table}
    where coalesce(${table.deliveredAt}, ${table.gaveUpAt}) < now() - make_interval(days => ${STORED_DAYS})`);
}
