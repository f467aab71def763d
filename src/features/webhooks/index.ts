/** Signed messages to an organization's receivers about its clusters and prices. See docs/webhooks.md. */
import type { Feature } from '../../app/feature.ts';
import { addWebhookCommands } from './command-line.ts';

/** Messages that one worker sends at the same time. A job that waits for its receiver holds no connection. */
const SENT_AT_ONCE = 32;

export const webhooksFeature: Feature = {
  name: 'webhooks',
  commands: addWebhookCommands,
  queues: [
    {
      name: 'webhooks',
      schedule: { cron: '* * * * *', job: 'check' },
      concurrency: () => SENT_AT_ONCE,
      open: async (context) => (await import('./job.ts')).webhookProcessor(context),
    },
  ],
  prune: async (db) => (await import('./registry.ts')).pruneWebhooks(db),
};
