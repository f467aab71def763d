/** Signed messages: to operators about problems, to an organization about its clusters and prices. */
import type { Feature } from '../../app/feature.ts';
import { addAlertCommands } from './commands.ts';
import { ALERT_SECTION, ALERT_SETTINGS, alertProblems, alertRules } from './settings.ts';
import { addWebhookCommands } from './webhook-commands.ts';

/** Messages that one worker sends at the same time. A job that waits for its receiver holds no connection. */
const SENT_AT_ONCE = 32;

export const notificationsFeature: Feature = {
  name: 'notifications',
  settings: ALERT_SETTINGS,
  file: ALERT_SECTION,
  problems: alertProblems,
  commands: (program, context) => {
    addAlertCommands(program, context);
    addWebhookCommands(program, context);
  },
  operations: async (context) => (await import('./routes.ts')).alertsPart(context),
  openAlerts: {
    all: async (sql) => (await import('./alerts.ts')).openAlerts(sql),
    openSince: async (sql, kind) => (await import('./alerts.ts')).openSince(sql, kind),
    activity: async (sql) => (await import('./alerts.ts')).alertActivity(sql),
  },
  queues: [
    {
      name: 'alerts',
      schedule: { cron: '* * * * *', job: 'evaluate' },
      // A slow receiver must not delay the next evaluation.
      concurrency: (config) => alertRules(config).webhooks.length + 1,
      open: async (context) => (await import('./alert-job.ts')).alertProcessor(context),
    },
    {
      name: 'webhooks',
      schedule: { cron: '* * * * *', job: 'check' },
      concurrency: () => SENT_AT_ONCE,
      open: async (context) => (await import('./webhook-job.ts')).webhookProcessor(context),
    },
  ],
  prune: async (db) => {
    await (await import('./alert-deliveries.ts')).pruneAlerts(db);
    await (await import('./receivers.ts')).pruneWebhooks(db);
  },
};
