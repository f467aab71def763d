/** An operator's acknowledgement of an alert: webhooks get no reminder of it. Pure. */
import { readSpan, span } from '../../domain/span.ts';

export interface Acknowledgement {
  /** RFC 3339. */
  readonly at: string;
  readonly by: string;
  readonly reason: string;
  /** The end of a snooze, RFC 3339; null for an acknowledgement that lasts until the alert ends. */
  readonly until: string | null;
}

const LONGEST_SNOOZE_MS = 30 * 86_400_000;

/** Accepted snoozes, for error messages. */
export const SNOOZE_FORMS = 'a span such as 30m, 4h or 7d, at most 30d';

/** Milliseconds of a snooze; undefined for a text that is no span, and for more than 30 days. */
export function snoozeSpan(text: string): number | undefined {
  const ms = readSpan(text);
  return ms !== undefined && ms <= LONGEST_SNOOZE_MS ? ms : undefined;
}

/** `acknowledged by ada 2 h ago: the provider repairs it`, or `snoozed by ada until 2026-01-31 12:05 UTC: …`. */
export function acknowledgementText({ at, by, reason, until }: Acknowledgement, now: Date): string {
  if (until !== null) return `snoozed by ${by} until ${until.slice(0, 16).replace('T', ' ')} UTC: ${reason}`;
  const seconds = Math.max(0, (now.getTime() - Date.parse(at)) / 1000);
  return `acknowledged by ${by} ${span(seconds)} ago: ${reason}`;
}
