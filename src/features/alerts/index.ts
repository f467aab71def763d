/** Webhooks and the console report what is wrong. See docs/alerts.md. */
import type { Feature } from '../../app/feature.ts';
import { pruneAlerts } from './deliveries.ts';
import { alertsQueue } from './job.ts';

export const alertsFeature: Feature = {
  name: 'alerts',
  queues: [alertsQueue],
  prune: pruneAlerts,
};
