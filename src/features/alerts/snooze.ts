/** Snoozes: webhooks get no reminder for a time. Pure. */
import { readSpan } from '../../lib/time-span.ts';

const LONGEST_SNOOZE_MS = 30 * 86_400_000;

/** Accepted snoozes, for error messages. */
export const SNOOZE_FORMS = 'a span such as 30m, 4h or 7d, at most 30d';

/** Milliseconds of a snooze; undefined for a text that is no span, and for more than 30 days. */
export function snoozeSpan(text: string): number | undefined {
  const ms = readSpan(text);
  return ms !== undefined && ms <= LONGEST_SNOOZE_MS ? ms : undefined;
}
