/** The jobs of the queue: one each minute evaluates conditions and collects events, others send the messages of one recipient each. */
import type { Job } from 'bullmq';
import type { QueueContext } from '../../app/feature.ts';
import { pricedSource } from '../../config/named-sources.ts';
import { deliver, dueRecipients, type RecipientAddress } from './deliver.ts';
import { evaluateAlerts } from './evaluate.ts';
import { collectEvents } from './events.ts';
import type { Recipient } from './messages.ts';
import { allWebhooks, findWebhook, operatorsRecipient, organizationsRecipient } from './receivers.ts';
import { alertRules } from './settings.ts';

interface NotificationJob {
  /** Absent in the job of a minute. */
  readonly to?: Recipient;
}

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

  const findRecipient = async (to: Recipient): Promise<RecipientAddress | undefined> => {
    if ('webhook' in to) {
      const webhook = await findWebhook(db, to.webhook);
      return webhook && organizationsRecipient(webhook);
    }
    const receiver = rules.webhooks.find(({ id }) => id === to.receiver);
    if (receiver) return operatorsRecipient(receiver);
    logger.warn(to, 'messages wait for a receiver that this worker does not have configured');
    return undefined;
  };

  return async ({ data: { to } }: Job<NotificationJob>, _token?: string, signal?: AbortSignal) => {
    if (to === undefined) return everyMinute();
    const recipient = await findRecipient(to);
    const pauseMs = recipient && (await deliver({ db, recipient, logger, signal }));
    // The row has the due time. The job only wakes a worker before the next minute.
    if (pauseMs !== undefined) await queue.add('deliver', { to }, { ...priorityOf(to), delay: pauseMs });
  };
}

/** Jobs without a priority come first: many slow receivers of organizations do not delay alerts. */
const priorityOf = (to: Recipient) => ('webhook' in to ? { priority: 1 } : {});
