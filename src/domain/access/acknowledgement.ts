/** An operator's acknowledgement of an alert: webhooks get no reminder of it. Pure. */
import { span } from '../words/span.ts';

export interface Acknowledgement {
  /** RFC 3339. */
  readonly at: string;
  readonly by: string;
  readonly reason: string;
  /** The end of a snooze, RFC 3339; null for an acknowledgement that lasts until the alert ends. */
  readonly until: string | null;
}

/** An open alert that an operator has acknowledged. */
export interface AcknowledgedAlert {
  readonly id: number;
  readonly kind: string;
  readonly subject: string;
  /** The id of the source that it is about; undefined for an alert about Fleetbook itself. */
  readonly source: string | undefined;
  readonly acknowledgement: Acknowledgement;
}

/** `acknowledged by ada 2 h ago: the provider repairs it`, or `snoozed by ada until 2026-01-31 12:05 UTC: …`. */
export function acknowledgementText({ at, by, reason, until }: Acknowledgement, now: Date): string {
  if (until !== null) return `snoozed by ${by} until ${until.slice(0, 16).replace('T', ' ')} UTC: ${reason}`;
  const seconds = Math.max(0, (now.getTime() - Date.parse(at)) / 1000);
  return `acknowledged by ${by} ${span(seconds)} ago: ${reason}`;
}
