/** The table of messages. It is in PostgreSQL, so a lost queue loses no message. */
import { randomUUID } from 'node:crypto';
import { audit } from '../../db/audit.ts';
import type { Database } from '../../db/connection/connect.ts';
import { and, eq, isNull, type SQL, sql } from '../../db/connection/drizzle.ts';
import { type RowOf, rfc3339 } from '../../db/connection/statements.ts';
import { messages } from '../../db/schema.ts';
import type { Decider } from '../../domain/operator.ts';
import type { DeliveryRecord } from './answers.ts';

/** A receiver of the operators by its configured id, or a webhook of an organization by its number. */
export type Recipient = { readonly receiver: string } | { readonly webhook: number };

export interface NewMessage {
  readonly to: Recipient;
  readonly body: object;
}

export const newMessageId = (): string => `msg_${randomUUID().replaceAll('-', '')}`;

/** Stores messages. Each recipient gets its messages in this order. */
export async function enqueue(tx: Database, added: readonly NewMessage[]): Promise<void> {
  if (added.length === 0) return;
  await tx.insert(messages).values(added.map(({ to, body }) => ({ ...to, messageId: newMessageId(), body })));
}

export const isWaiting: SQL = sql`${messages.deliveredAt} is null and ${messages.gaveUpAt} is null`;

export const isTo = (to: Recipient) =>
  'webhook' in to
    ? eq(messages.webhook, to.webhook)
    : and(isNull(messages.webhook), eq(messages.receiver, to.receiver));

export const countWaiting = (db: Database, to: Recipient): Promise<number> =>
  db.$count(messages, and(isTo(to), isWaiting));

/**
 * Returns a page of the messages to operators that match, the newest first, and the number of all that match.
 * @param page.search a part of the receiver's id, the message's id, its last error or its body, in any case
 */
export async function findDeliveries(
  db: Database,
  page: {
    readonly search?: string | undefined;
    readonly state?: DeliveryRecord['state'] | undefined;
    readonly limit: number | undefined;
    readonly offset?: number;
  },
): Promise<{ readonly total: number; readonly rows: readonly DeliveryRecord[] }> {
  const { search, state, limit = null, offset = 0 } = page;
  const stateOf = sql`case when ${messages.deliveredAt} is not null then 'delivered'
    when ${messages.gaveUpAt} is not null then 'given up' else 'waiting' end`;
  const text = sql`concat_ws(' ', ${messages.receiver}, ${messages.messageId}, ${messages.lastError}, ${messages.body}::text)`;
  const matches = and(
    isNull(messages.webhook),
    state === undefined ? undefined : sql`${stateOf} = ${state}`,
    search === undefined ? undefined : sql`position(lower(${search}) in lower(${text})) > 0`,
  );
  const [total, rows] = await Promise.all([
    db.$count(messages, matches),
    db.execute<RowOf<DeliveryRecord>>(sql`
      select id::int, receiver as webhook, message_id as "messageId", attempts, last_error as "lastError", body,
        ${stateOf} as state, ${rfc3339(messages.createdAt)} as "createdAt", ${rfc3339(messages.deliveredAt)} as "deliveredAt",
        case when ${isWaiting} then ${rfc3339(messages.nextAttemptAt)} end as "nextAttemptAt"
      from messages where ${matches} order by id desc limit ${limit} offset ${offset}`),
  ]);
  return { total, rows };
}

/** Copies a message to operators. @returns the receiver of the copy; undefined without such a message */
export async function sendAgain(db: Database, id: number, decider: Decider): Promise<string | undefined> {
  return db.transaction(async (tx) => {
    const [row] = await tx
      .select()
      .from(messages)
      .where(and(eq(messages.id, id), isNull(messages.webhook)));
    if (!row?.receiver) return undefined;
    const { receiver, messageId, body } = row;
    await tx.insert(messages).values({ receiver, messageId, body });
    const details = { webhook: receiver, message: messageId };
    await audit(tx, decider, { action: 'alert.resend', subject: { kind: 'delivery', id }, details });
    return receiver;
  });
}

/** Days for which finished messages are stored. */
const STORED_DAYS = 90;

/** Deletes messages that were delivered or given up long ago. */
export async function pruneMessages(db: Database): Promise<void> {
  await db
    .delete(messages)
    .where(
      sql`coalesce(${messages.deliveredAt}, ${messages.gaveUpAt}) < now() - make_interval(days => ${STORED_DAYS})`,
    );
}
