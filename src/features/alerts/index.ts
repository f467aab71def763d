/** Alerts about problems, in webhooks and the console. See docs/alerts.md. */
import type { Feature } from '../../app/feature.ts';
import { addAlertCommands } from './command-line.ts';
import { ALERT_SECTION, ALERT_SETTINGS, alertProblems, alertRules } from './settings.ts';

export const alertsFeature: Feature = {
  name: 'alerts',
  settings: ALERT_SETTINGS,
  file: ALERT_SECTION,
  problems: alertProblems,
  commands: addAlertCommands,
  operations: async (context) => (await import('./console.ts')).alertsPart(context),
  openAlerts: {
    all: async (sql) => (await import('./queries.ts')).openAlerts(sql),
    openSince: async (sql, kind) => (await import('./queries.ts')).openSince(sql, kind),
    activity: async (sql) => (await import('./queries.ts')).alertActivity(sql),
  },
  queues: [
    {
      name: 'alerts',
      schedule: { cron: '* * * * *', job: 'evaluate' },
      // A slow receiver must not delay the next evaluation.
      concurrency: (config) => alertRules(config).webhooks.length + 1,
      open: async (context) => (await import('./job.ts')).alertProcessor(context),
    },
  ],
  prune: async (db) => (await import('./deliveries.ts')).pruneAlerts(db),
};
