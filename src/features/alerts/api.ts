/** What the routes of alerts answer: types alone, which the browser's code shares. */
import type { AlertRecord, DeliveryRecord } from './queries.ts';

export interface ShownAlert extends AlertRecord {
  /** The source that it is about; null for an alert about Fleetbook itself. */
  readonly source: string | null;
}

export interface ShownAlertRule {
  readonly kind: string;
  /** When it opens, in words. */
  readonly opens: string;
}

export interface ShownWebhook {
  readonly id: string;
  readonly format: 'standard' | 'slack';
  readonly isSigned: boolean;
  /** Null for all. */
  readonly kinds: readonly string[] | null;
}

export interface AlertsAnswer {
  readonly rules: readonly ShownAlertRule[];
  /** Hours after which an alert that is still open is sent again. */
  readonly repeatHours: number;
  readonly webhooks: readonly ShownWebhook[];
  /** The newest first. */
  readonly firing: readonly ShownAlert[];
  /** The last ones that are over. */
  readonly over: readonly ShownAlert[];
}

export interface ShownDelivery extends Omit<DeliveryRecord, 'body'> {
  /** `alerts.opened`, `alerts.repeated`, `alerts.resolved` or `alerts.test`. */
  readonly type: string;
  /** What the first alerts of it say, and how many there are. */
  readonly summaries: readonly string[];
  readonly alerts: number;
}

export interface DeliveriesAnswer {
  readonly total: number;
  readonly rows: readonly ShownDelivery[];
}
