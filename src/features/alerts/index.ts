/** Webhooks and the console report what is wrong. See docs/alerts.md. */
import type { Feature } from '../../app/feature.ts';
import { addAlertCommands } from './command-line.ts';
import { alertsPart } from './console.ts';
import { pruneAlerts } from './deliveries.ts';
import { alertsQueue } from './job.ts';
import { acknowledgedAlerts } from './queries.ts';
import { ALERT_SECTION, ALERT_SETTINGS, alertProblems } from './settings.ts';

export const alertsFeature: Feature = {
  name: 'alerts',
  settings: ALERT_SETTINGS,
  file: ALERT_SECTION,
  problems: alertProblems,
  commands: addAlertCommands,
  operations: alertsPart,
  acknowledged: acknowledgedAlerts,
  queues: [alertsQueue],
  prune: pruneAlerts,
};
