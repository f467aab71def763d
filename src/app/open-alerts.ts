/** Open alerts, for the console and `fleetbook status`. */
export { alertActivity, openAlerts, openSince } from '../features/notifications/alerts.ts';
