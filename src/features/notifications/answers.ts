/** Alerts and messages as commands and routes show them. The console in the browser shares these types. */
import type { AlertRecord } from '../../domain/alert.ts';

/** A message to operators. All instants are RFC 3339. */
export interface DeliveryRecord {
  readonly id: number;
  /** The configured id of the receiver. */
  readonly webhook: string;
  readonly messageId: string;
  readonly body: unknown;
  readonly attempts: number;
  readonly state: 'waiting' | 'delivered' | 'given up';
  readonly createdAt: string;
  readonly deliveredAt: string | null;
  readonly nextAttemptAt: string | null;
  readonly lastError: string | null;
}

export interface ShownAlert extends AlertRecord {
  /** The source that the alert is about; null for an alert about Fleetbook itself. */
  readonly source: string | null;
  /** The page of the console where an operator acts on it. */
  readonly path: string;
}

export interface ShownWebhook {
  readonly id: string;
  readonly format: 'standard' | 'slack';
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
