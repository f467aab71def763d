/** Sends the messages of webhooks, oldest first, and stores the result of each attempt. */
import type { Logger } from 'pino';
import { audit } from '../../db/audit.ts';
import type { Database } from '../../db/connection/connect.ts';
import { and, asc, eq, isNull, lte, or, type PgUpdateSetSource, sql } from '../../db/connection/drizzle.ts';
import { nameOf } from '../../db/connection/statements.ts';
import { alerts, alertDeliveries as deliveries } from '../../db/schema.ts';
import type { Decider } from '../../domain/operator.ts';
import { type AlertMessage, bodyText, newMessageId, signedHeaders, testMessage } from './message.ts';
import type { Webhook } from './rules.ts';

const TIMEOUT_MS = 10_000;
const FIRST_PAUSE_MS = 15_000;
const LONGEST_PAUSE_MS = 15 * 60_000;
/** The age at which a message gets its last attempt. */
const GIVE_UP_AFTER_MS = 3 * 24 * 3_600_000;
/** Days for which resolved alerts and finished messages are stored. */
const STORED_DAYS = 90;

const IS_WAITING = and(isNull(deliveries.deliveredAt), isNull(deliveries.gaveUpAt));

export interface DeliverOptions {
  readonly db: Database;
  readonly webhook: Webhook;
  readonly logger: Logger;
  /** Milliseconds since the epoch. */
  readonly now?: () => number;
  readonly signal?: AbortSignal | undefined;
}

/** Sends all waiting messages in order. @returns milliseconds until the next attempt; undefined if none waits */
export async function deliver(options: DeliverOptions): Promise<number | undefined> {
  const { webhook, logger } = options;
  for (;;) {
    const result = await sendNext(options);
    if (result === 'none') return undefined;
    if (result === 'delivered') continue;
    if (!result.isLast) return result.pauseMs;
    logger.warn(
      { webhook: webhook.id, error: result.error },
      'a message about alerts is given up after three days of failed attempts',
    );
  }
}

interface FailedAttempt {
  readonly error: string;
  readonly pauseMs: number;
  readonly isLast: boolean;
}

/** Sends the oldest waiting message. A lock on its row keeps other workers from sending it too: `none` for them. */
async function sendNext(options: DeliverOptions): Promise<'none' | 'delivered' | FailedAttempt> {
  const { db, webhook, now = Date.now, signal } = options;
  return db.transaction(async (tx) => {
    const [next] = await tx
      .select({ id: deliveries.id })
      .from(deliveries)
      .where(and(eq(deliveries.webhook, webhook.id), IS_WAITING))
      .orderBy(asc(deliveries.id))
      .limit(1);
    if (next === undefined) return 'none';
    const [delivery] = await tx
      .select()
      .from(deliveries)
      .where(and(eq(deliveries.id, next.id), IS_WAITING))
      .for('update', { skipLocked: true });
    if (delivery === undefined) return 'none';
    const { id, messageId, createdAt } = delivery;
    const error = await post(webhook, messageId, delivery.body as AlertMessage, now(), signal);
    const attempts = delivery.attempts + 1;
    const store = (columns: PgUpdateSetSource<typeof deliveries>) =>
      tx
        .update(deliveries)
        .set({ attempts, ...columns })
        .where(eq(deliveries.id, id));
    if (error === undefined) {
      await store({ deliveredAt: sql`now()`, lastError: null });
      return 'delivered';
    }
    const pauseMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(delivery.attempts, 20));
    const isLast = now() - Date.parse(createdAt) > GIVE_UP_AFTER_MS;
    await store({
      lastError: error,
      nextAttemptAt: sql`now() + make_interval(secs => ${pauseMs / 1000})`,
      ...(isLast && { gaveUpAt: sql`now()` }),
    });
    return { error, pauseMs, isLast };
  });
}

/** Sends one message. @param now milliseconds @returns the error unless the status is 2xx */
export async function post(
  webhook: Webhook,
  messageId: string,
  message: AlertMessage,
  now: number,
  signal?: AbortSignal,
): Promise<string | undefined> {
  const body = bodyText(message, webhook.format);
  const seconds = Math.floor(now / 1000);
  const signature = webhook.secret ? signedHeaders(messageId, seconds, body, webhook.secret) : {};
  const timeout = AbortSignal.timeout(TIMEOUT_MS);
  try {
    const response = await fetch(webhook.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'user-agent': 'fleetbook', ...signature },
      body,
      redirect: 'manual',
      signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
    });
    await response.body?.cancel();
    return response.ok ? undefined : `it answered ${response.status}`;
  } catch (error) {
    return timeout.aborted ? `no answer within ${TIMEOUT_MS / 1000} s` : errorText(error);
  }
}

/** The error's code without its message, which may contain the address and its secret. */
function errorText(error: unknown): string {
  const { cause, name } = error as { cause?: { code?: unknown }; name?: unknown };
  return `it could not be reached (${String(cause?.code ?? name ?? 'error')})`;
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
  return post(webhook, newMessageId(), testMessage(now), now.getTime());
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

export async function dueWebhooks(db: Database): Promise<string[]> {
  const next = db
    .selectDistinctOn([deliveries.webhook], { webhook: deliveries.webhook, at: deliveries.nextAttemptAt })
    .from(deliveries)
    .where(IS_WAITING)
    .orderBy(deliveries.webhook, asc(deliveries.id))
    .as('next');
  const rows = await db.select({ webhook: next.webhook }).from(next).where(lte(next.at, sql`now()`));
  return rows.map(({ webhook }) => webhook);
}

export async function pruneAlerts(db: Database): Promise<void> {
  const isOld = (at: ReturnType<typeof nameOf>) => sql`${at} < now() - make_interval(days => ${STORED_DAYS})`;
  await db.delete(alerts).where(isOld(nameOf(alerts.resolvedAt)));
  await db
    .delete(deliveries)
    .where(or(isOld(nameOf(deliveries.deliveredAt)), isOld(nameOf(deliveries.gaveUpAt))));
}
