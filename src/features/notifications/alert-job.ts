/** The jobs of alerts: one evaluates each minute, and others send the messages of one webhook each. */
import type { Job } from 'bullmq';
import { AttemptFailed } from '../../../workers/retry.ts';
import type { QueueContext } from '../../app/feature.ts';
import { pricedSource } from '../../config/named-sources.ts';
import { deliver, dueWebhooks } from './alert-deliveries.ts';
import { evaluateAlerts } from './evaluate.ts';
import { alertRules } from './settings.ts';

interface AlertJob {
  readonly webhook?: string;
}

export function alertProcessor({ config, store: { db }, queue, logger, findConditions }: QueueContext) {
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
    // A webhook has one job at a time. While the job waits for its next attempt, no other is added.
    for (const webhook of await dueWebhooks(db))
      await queue.add('deliver', { webhook }, { deduplication: { id: `deliver-${webhook}` } });
  };

  return async (job: Job<AlertJob>, _token?: string, signal?: AbortSignal): Promise<void> => {
    const { webhook: id } = job.data;
    if (id === undefined) return evaluate();
    const webhook = rules.webhooks.find((each) => each.id === id);
    if (!webhook) {
      logger.warn({ webhook: id }, 'messages wait for a webhook that this worker does not have configured');
      return;
    }
    const pauseMs = await deliver({ db, webhook, logger, signal });
    if (pauseMs !== undefined)
      throw new AttemptFailed(
        new Error(`webhook ${id} did not accept a message; the worker retries it`),
        pauseMs,
      );
  };
}
