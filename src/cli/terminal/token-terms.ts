/** Reads and prints the name and expiry of a token. */
import { readName } from '../../domain/text/names.ts';
import { readAhead, readSpan } from '../../domain/text/time-span.ts';
import { UsageFailure } from './failure.ts';

export const expiry = (until: string | null) => (until === null ? 'without an expiry' : `until ${until}`);

const LONGEST_NAME = 200;

export function readTokenName(text: string): string {
  const name = readName(text);
  if (name !== undefined && name.length <= LONGEST_NAME) return name;
  throw new UsageFailure(`--name must be one line of at most ${LONGEST_NAME} characters`);
}

/** Returns milliseconds. @throws UsageFailure */
export function readGrace(text: string): number {
  const span = readSpan(text);
  if (span !== undefined) return span;
  throw new UsageFailure(`--grace "${text}" is not a span; use e.g. 30m, 1h or 7d`);
}

/** Reads a span from `now` (`90d`, `12h`, `30m`) or a date. @throws UsageFailure, also for a past time */
export function readExpiry(text: string, now: Date): Date {
  const at = readAhead(text, now);
  if (at === undefined) {
    throw new UsageFailure(
      `--expires "${text}" is not a time; use e.g. 90d, 12h, 2027-01-31 or 2027-01-31T12:00:00Z`,
    );
  }
  if (at <= now) throw new UsageFailure(`--expires "${text}" is in the past; give a future time`);
  return at;
}
