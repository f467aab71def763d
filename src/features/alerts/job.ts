/** Looks once a minute for what is wrong, and sends the messages that tell of it. */
import type { Job, Queue } from 'bullmq';
import type { Logger } from 'pino';
import { type AlertJob, AttemptFailed } from '../../../workers/queues.ts';
import type { Config } from '../../config/config.ts';
import { pricedSource } from '../../config/priced-source.ts';
import type { ClientDatabase } from '../../db/connection/database.ts';
import type { Condition } from '../../domain/condition.ts';
import { deliver } from './deliver.ts';
import { dueWebhooks } from './deliveries.ts';
import { evaluateAlerts } from './evaluate.ts';

export const ALERTS_SCHEDULE = { name: 'alerts', cron: '* * * * *' };

export interface AlertDependencies {
  readonly config: Config;
  readonly db: ClientDatabase;
  /** For the messages that an evaluation leaves. */
  readonly queue: Queue<AlertJob>;
  readonly logger: Logger;
  /** Finds what features report. */
  readonly findMore: () => Promise<readonly Condition[]>;
}

/** Runs the jobs of the queue: one that names no webhook evaluates, the others send. */
export function alertProcessor({ config, db, queue, logger, findMore }: AlertDependencies) {
  const { alerts: rules, settings } = config;
  const sources = config.sources.map((source) => ({
    ...pricedSource(source, settings),
    maxAge: source.maxAge,
  }));
  return async (job: Job<AlertJob>, _token?: string, signal?: AbortSignal): Promise<void> => {
    const { webhook: id } = job.data;
    if (id === undefined) {
      const now = new Date();
      const changes = await evaluateAlerts(db, sources, rules, now, findMore);
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
