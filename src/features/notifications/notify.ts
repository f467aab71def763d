/** The jobs of the queue: one each minute evaluates conditions and collects events, others send the messages of one recipient each. */
import { DelayedError, type Job } from 'bullmq';
import type { QueueContext } from '../../app/feature.ts';
import { pricedSource } from '../../config/named-sources.ts';
import { deliver, dueRecipients, type MissingReceiver, type RecipientAddress } from './deliver.ts';
import { evaluateAlerts } from './evaluate.ts';
import { collectEvents } from './events.ts';
import type { Recipient } from './messages.ts';
import { allWebhooks, findWebhook, operatorsRecipient, organizationsRecipient } from './receivers.ts';
import { alertRules, WEBHOOKS_AT_ONCE } from './rules.ts';

interface NotificationJob {
  /** Absent in the job of a minute. */
  readonly to?: Recipient;
}

/** Milliseconds until a job that found no place is tried again, by any worker. */
const PLACE_AGAIN_MS = 1000;

export function notifications({ config, store: { db }, queue, logger, findConditions }: QueueContext) {
  const rules = alertRules(config);
  const sources = config.sources.map((source) => ({
    ...pricedSource(source, config.settings),
    maxAge: source.maxAge,
  }));

  const evaluate = async (): Promise<void> => {
    const changes = await evaluateAlerts(db, sources, rules, new Date(), findConditions);
    for (const { kind, subject, summary } of changes?.opened ?? [])
      logger.warn({ kind, subject }, `alert: ${summary}`);
    for (const { kind, subject, summary } of changes?.resolved ?? [])
      logger.info({ kind, subject }, `alert resolved: ${summary}`);
  };

  const collect = async (): Promise<void> => {
    for (const webhook of await allWebhooks(db)) {
      try {
        await collectEvents(db, webhook, new Date());
      } catch (error) {
        logger.warn(
          { err: error, webhook },
          'a webhook could not be checked; the next minute checks it again',
        );
      }
    }
  };

  /** A recipient has one such job at a time. A second one does no harm, because its claim finds no message that is due. */
  const addDeliveries = async (): Promise<void> => {
    for (const to of await dueRecipients(db))
      await queue.add('deliver', { to }, { ...priorityOf(to), deduplication: { id: JSON.stringify(to) } });
  };

  const everyMinute = async (): Promise<void> => {
    try {
      await evaluate();
    } finally {
      // Alerts do not wait for the webhooks of organizations, nor those for a failed evaluation.
      await addDeliveries();
      await collect();
      await addDeliveries();
    }
  };

  const findRecipient = async (to: Recipient): Promise<RecipientAddress | MissingReceiver | undefined> => {
    if ('webhook' in to) {
      const webhook = await findWebhook(db, to.webhook);
      return webhook && organizationsRecipient(webhook);
    }
    const receiver = rules.webhooks.find(({ id }) => id === to.receiver);
    if (receiver) return operatorsRecipient(receiver);
    logger.warn(to, 'messages wait for a receiver that is not configured');
    return {
      to,
      missing: `no receiver "${to.receiver}" is configured; configure it again, or the message is given up when it is three days old`,
    };
  };

  const sendTo = async (to: Recipient, signal: AbortSignal | undefined): Promise<void> => {
    const recipient = await findRecipient(to);
    const pauseMs = recipient && (await deliver({ db, recipient, logger, signal }));
    // The row has the due time. The job only wakes a worker before the next minute.
    if (pauseMs !== undefined) await queue.add('deliver', { to }, { ...priorityOf(to), delay: pauseMs });
  };

  let toWebhooks = 0;
  return async (job: Job<NotificationJob>, token?: string, signal?: AbortSignal) => {
    const { to } = job.data;
    if (to === undefined) return everyMinute();
    if (!('webhook' in to)) return sendTo(to, signal);
    // Slow receivers of organizations must not occupy the places of alerts.
    if (toWebhooks >= WEBHOOKS_AT_ONCE) {
      await job.moveToDelayed(Date.now() + PLACE_AGAIN_MS, token);
      throw new DelayedError();
    }
    toWebhooks += 1;
    try {
      await sendTo(to, signal);
    } finally {
      toWebhooks -= 1;
    }
  };
}

/** Jobs without a priority come first: a free place is for an alert before it is for a webhook of an organization. */
const priorityOf = (to: Recipient) => ('webhook' in to ? { priority: 1 } : {});
