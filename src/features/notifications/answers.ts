/** The answers of the routes of alerts. The console in the browser shares these types. */
import type { AlertRecord, DeliveryRecord } from './alerts.ts';
import type { Webhook } from './rules.ts';

export interface ShownAlert extends AlertRecord {
  /** The source that the alert is about; null for an alert about Fleetbook itself. */
  readonly source: string | null;
  /** The page of the console where an operator acts on it. */
  readonly path: string;
}

export interface ShownWebhook extends Pick<Webhook, 'id' | 'format'> {
  readonly isSigned: boolean;
  readonly kinds: readonly string[] | null;
}

export interface AlertsAnswer {
  /** Each kind, and in words when its alert opens. */
  readonly rules: readonly { readonly kind: string; readonly opens: string }[];
  readonly repeatHours: number;
  readonly webhooks: readonly ShownWebhook[];
  /** Open alerts, the newest first. */
  readonly firing: readonly ShownAlert[];
  readonly over: readonly ShownAlert[];
}

export interface ShownDelivery extends Omit<DeliveryRecord, 'body'> {
  /** `alerts.opened`, `alerts.repeated`, `alerts.resolved` or `alerts.test`. */
  readonly type: string;
  /** The summaries of the first alerts. */
  readonly summaries: readonly string[];
  readonly alerts: number;
}

export interface DeliveriesAnswer {
  readonly total: number;
  readonly rows: readonly ShownDelivery[];
}
