/** Looks once a minute for what is wrong, and sends the messages that tell of it. */
import type { Job, Queue } from 'bullmq';
import { AttemptFailed } from '../../../workers/attempt-failed.ts';
import type { QueueContext } from '../../app/feature.ts';
import { pricedSource } from '../../config/priced-source.ts';
import type { ClientDatabase } from '../../db/connection/database.ts';
import { deliver } from './deliver.ts';
import { dueWebhooks } from './deliveries.ts';
import { evaluateAlerts } from './evaluate.ts';
import { alertRules } from './settings.ts';

/** A job that names a webhook sends its messages. A job without one evaluates. */
interface AlertJob {
  readonly webhook?: string;
}

export function alertProcessor({ config, store: { db }, queue, logger, findConditions }: QueueContext) {
  const rules = alertRules(config);
  const sources = config.sources.map((source) => ({
    ...pricedSource(source, config.settings),
    maxAge: source.maxAge,
  }));
  return async (job: Job<AlertJob>, _token?: string, signal?: AbortSignal): Promise<void> => {
    const { webhook: id } = job.data;
    if (id === undefined) {
      const now = new Date();
      const changes = await evaluateAlerts(db, sources, rules, now, findConditions);
      for (const { kind, subject, summary } of changes?.opened ?? [])
        logger.warn({ kind, subject }, `alert: ${summary}`);
      for (const { kind, subject, summary } of changes?.resolved ?? [])
        logger.info({ kind, subject }, `alert resolved: ${summary}`);
      await enqueueDeliveries(db, queue);
      return;
    }
    const webhook = rules.webhooks.find((each) => each.id === id);
    if (!webhook) {
      logger.warn({ webhook: id }, 'messages wait for a webhook that is not configured here');
      return;
    }
    const pauseMs = await deliver({ db, webhook, logger, signal });
    if (pauseMs !== undefined)
      throw new AttemptFailed(new Error(`webhook ${id} did not take a message; it is tried again`), pauseMs);
  };
}

/** One job for each webhook at a time: while one waits for its next attempt, no other is added. */
async function enqueueDeliveries(db: ClientDatabase, queue: Queue<AlertJob>): Promise<void> {
  for (const webhook of await dueWebhooks(db))
    await queue.add('deliver', { webhook }, { deduplication: { id: `deliver-${webhook}` } });
}
