/** Sends the waiting messages of a recipient in order, and stores the result of each attempt in the message's row. */
import type { Logger } from 'pino';
import type { Database } from '../../db/connection/connect.ts';
import { sql } from '../../db/connection/drizzle.ts';
import { nameOf, type RowOf } from '../../db/connection/statements.ts';
import { messages } from '../../db/schema.ts';
import { isTo, isWaiting, type Recipient } from './messages.ts';
import { type Receiver, send } from './send.ts';

const FIRST_PAUSE_MS = 15_000;
const LONGEST_PAUSE_MS = 15 * 60_000;
/** The age at which a message gets its last attempt. */
const GIVE_UP_AFTER_MS = 3 * 24 * 3_600_000;
/** Time that an attempt has alone. Afterwards another worker may send the message: the first one has died. */
const LEASE_SECONDS = 60;
/** Time that a recipient occupies a place of a worker. A slow one with many messages continues in the next minute. */
const TURN_MS = 60_000;

/** The address of a recipient, and the form of its messages. */
export interface RecipientAddress extends Receiver {
  readonly to: Recipient;
  textOf(body: unknown): string;
}

/** A receiver that has messages and is not configured. An attempt to send to it fails. */
export interface MissingReceiver {
  readonly to: Recipient;
  /** The error of each attempt. */
  readonly missing: string;
}

export interface DeliverOptions {
  readonly db: Database;
  readonly recipient: RecipientAddress | MissingReceiver;
  readonly logger: Logger;
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

/** Sends the waiting messages in order. @returns milliseconds until the next attempt; undefined if no attempt has failed */
export async function deliver(options: DeliverOptions): Promise<number | undefined> {
  const { db, recipient, logger } = options;
  const end = Date.now() + TURN_MS;
  while (Date.now() < end) {
    const claimed = await claimNext(db, recipient.to);
    if (claimed === undefined) return undefined;
    const result = await attempt(options, claimed);
    if (result === 'stopped') return undefined;
    if (result === 'delivered') continue;
    if (!result.isLast) return result.pauseMs;
    logger.warn(
      { ...recipient.to, error: result.error },
      'a message is given up after three days of failed attempts',
    );
  }
  return undefined;
}

/** Takes the oldest waiting message for one attempt. A later message waits for it, so the order is kept. */
async function claimNext(db: Database, to: Recipient): Promise<ClaimedMessage | undefined> {
  const { id, messageId, body, attempts, nextAttemptAt, createdAt } = messages;
  // No transaction waits for the receiver: a slow receiver must not occupy a connection of the worker.
  const [row] = await db.execute<RowOf<ClaimedMessage>>(sql`
    update ${messages} set ${nameOf(attempts)} = ${attempts} + 1,
      ${nameOf(nextAttemptAt)} = now() + make_interval(secs => ${LEASE_SECONDS})
    where ${nextAttemptAt} <= now() and ${isWaiting}
      and ${id} = (select min(${id}) from ${messages} where ${isTo(to)} and ${isWaiting})
    returning ${id}::text as id, ${messageId} as "messageId", ${body} as body, ${attempts} as attempts,
      ${createdAt} as "createdAt"`);
  return row;
}

async function attempt(
  { db, recipient, signal }: DeliverOptions,
  { id, messageId, body, attempts, createdAt }: ClaimedMessage,
): Promise<FailedAttempt | 'delivered' | 'stopped'> {
  const error =
    'missing' in recipient
      ? recipient.missing
      : await send(recipient, { messageId, body: recipient.textOf(body) }, Date.now(), signal);
  // A worker that was frozen for longer than its lease may end after another worker's attempt, which counts then.
  const isOwn = sql`${messages.id} = ${id} and ${messages.attempts} = ${attempts} and ${isWaiting}`;
  if (error === undefined) {
    await db.execute(sql`
      update ${messages} set ${nameOf(messages.deliveredAt)} = now(), ${nameOf(messages.lastError)} = null
      where ${messages.id} = ${id}`);
    return 'delivered';
  }
  // The worker stops: its own end is no failure of the receiver.
  if (signal?.aborted) {
    await db.execute(sql`
      update ${messages} set ${nameOf(messages.attempts)} = ${messages.attempts} - 1, ${nameOf(messages.nextAttemptAt)} = now()
      where ${isOwn}`);
    return 'stopped';
  }
  const pauseMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(attempts - 1, 20));
  const isLast = Date.now() - Date.parse(createdAt) > GIVE_UP_AFTER_MS;
  await db.execute(sql`
    update ${messages} set ${nameOf(messages.lastError)} = ${error},
      ${nameOf(messages.nextAttemptAt)} = now() + make_interval(secs => ${pauseMs / 1000}),
      ${nameOf(messages.gaveUpAt)} = case when ${isLast} then now() end
    where ${isOwn}`);
  return { error, pauseMs, isLast };
}

/** Returns the recipients whose oldest waiting message is due. */
export async function dueRecipients(db: Database): Promise<Recipient[]> {
  const rows = await db.execute<{ webhook: number | null; receiver: string }>(sql`
    select next.webhook, next.receiver from (
      select distinct on (webhook, receiver) webhook, receiver, next_attempt_at
      from messages where ${isWaiting} order by webhook, receiver, id
    ) next where next.next_attempt_at <= now()`);
  return rows.map(({ webhook, receiver }) => (webhook === null ? { receiver } : { webhook }));
}
