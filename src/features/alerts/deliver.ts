/** Sends the messages of a webhook, one after the other. */
import type { Logger } from 'pino';
import type { Database } from '../../db/connection/connect.ts';
import { type DeliveryRow, type SendResult, sendNext } from './deliveries.ts';
import { type AlertMessage, bodyText, signedHeaders } from './message.ts';
import type { Webhook } from './rules.ts';

const ANSWER_WITHIN_MS = 10_000;
const FIRST_PAUSE_MS = 15_000;
const LONGEST_PAUSE_MS = 15 * 60_000;
/** A receiver that is away for longer loses its oldest messages. */
const GIVE_UP_AFTER_MS = 3 * 24 * 3_600_000;

export interface DeliverOptions {
  readonly db: Database;
  readonly webhook: Webhook;
  readonly logger: Logger;
  readonly now?: () => number;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Sends all that waits for a webhook, oldest first. A message that fails holds up those after it, so that they arrive in
 * the order of time. A message counts as delivered when its receiver has answered with 2xx.
 * @returns milliseconds after which the next attempt is due; undefined when nothing waits any more
 */
export async function deliver(options: DeliverOptions): Promise<number | undefined> {
  const { db, webhook, logger } = options;
  for (;;) {
    const result = await sendNext(db, webhook.id, (delivery) => send(delivery, options));
    if (result === undefined) return undefined;
    if (result.outcome === 'delivered') continue;
    const { error, isLast, pauseMs } = result;
    if (!isLast) return pauseMs;
    logger.warn({ webhook: webhook.id, error }, 'an alert could not be delivered for days and is given up');
  }
}

async function send(delivery: DeliveryRow, options: DeliverOptions): Promise<SendResult> {
  const { webhook, now = Date.now, signal } = options;
  const error = await post(webhook, delivery.messageId, delivery.body as AlertMessage, now(), signal);
  if (error === undefined) return { outcome: 'delivered' };
  const pauseMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(delivery.attempts, 20));
  const isLast = now() - Date.parse(delivery.createdAt) > GIVE_UP_AFTER_MS;
  return { outcome: 'failed', error, pauseMs, isLast };
}

/**
 * Sends one message.
 * @param now milliseconds since the epoch
 * @returns why it was not taken; undefined when it was
 */
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
  const within = AbortSignal.timeout(ANSWER_WITHIN_MS);
  try {
    const response = await fetch(webhook.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'user-agent': 'fleetbook', ...signature },
      body,
      redirect: 'manual',
      signal: signal ? AbortSignal.any([signal, within]) : within,
    });
    await response.body?.cancel();
    return response.ok ? undefined : `it answered ${response.status}`;
  } catch (error) {
    return within.aborted ? `no answer within ${ANSWER_WITHIN_MS / 1000} s` : reasonOf(error);
  }
}

/** The code alone: a message may hold the address, and the address a secret. */
function reasonOf(error: unknown): string {
  const { cause, name } = error as { cause?: { code?: unknown }; name?: unknown };
  return `it could not be reached (${String(cause?.code ?? name ?? 'error')})`;
}
