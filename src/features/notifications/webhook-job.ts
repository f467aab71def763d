/** The jobs of webhooks: one checks for events each minute, and others send the messages of one webhook each. */
import type { Job } from 'bullmq';
import { AttemptFailed } from '../../../workers/retry.ts';
import type { QueueContext } from '../../app/feature.ts';
import { webhookMessages } from '../../db/schema.ts';
import { checkWebhook } from './check.ts';
import { deliver, dueWebhooks } from './deliver.ts';
import { allWebhooks, findWebhook } from './receivers.ts';

interface WebhookJob {
  readonly webhook?: number;
}

export function webhookProcessor({ store: { db }, queue, logger }: QueueContext) {
  const check = async (): Promise<void> => {
    for (const id of await allWebhooks(db)) {
      try {
        await checkWebhook(db, id, new Date());
      } catch (error) {
        logger.warn(
          { err: error, webhook: id },
          'a webhook could not be checked; the next minute checks it again',
        );
      }
    }
    // A webhook has one job at a time. While the job waits for its next attempt, no other is added.
    for (const webhook of await dueWebhooks(db, webhookMessages))
      await queue.add(
        'deliver',
        { webhook: Number(webhook) },
        { deduplication: { id: `deliver-${webhook}` } },
      );
  };

  return async (job: Job<WebhookJob>, _token?: string, signal?: AbortSignal): Promise<void> => {
    const { webhook: id } = job.data;
    if (id === undefined) return check();
    const receiver = await findWebhook(db, id);
    if (!receiver) return;
    const pauseMs = await deliver({
      db,
      table: webhookMessages,
      webhook: id,
      receiver,
      bodyText: JSON.stringify,
      onGivenUp: (error) =>
        logger.warn(
          { webhook: id, organization: receiver.organizationId, error },
          'a message of a webhook is given up after three days of failed attempts',
        ),
      signal,
    });
    if (pauseMs !== undefined)
      throw new AttemptFailed(
        new Error(`webhook ${id} did not accept a message; the worker retries it`),
        pauseMs,
      );
  };
}
