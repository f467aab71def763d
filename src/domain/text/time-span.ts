/** Returns a span as text: `45 s`, `12 min`, `3 h` or `4 d`. */
export function span(seconds: number): string {
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86_400)} d`;
}

const UNITS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Parses a span such as `90d`, `12h` or `30m`. Returns milliseconds, or undefined for any other text. */
export function readSpan(text: string): number | undefined {
  const [, amount, unit = ''] = /^([1-9]\d{0,4})([mhd])$/.exec(text) ?? [];
  const unitMs = UNITS[unit];
  return unitMs === undefined ? undefined : Number(amount) * unitMs;
}

/** Parses a span before `now` (`24h`), a date or an RFC 3339 time; undefined for any other text. */
export function readPast(text: string, now: Date): Date | undefined {
  const span = readSpan(text);
  return span === undefined ? readInstant(text) : new Date(now.getTime() - span);
}

/** Parses a span after `now` (`90d`), a date or an RFC 3339 time; undefined for any other text. */
export function readAhead(text: string, now: Date): Date | undefined {
  const span = readSpan(text);
  return span === undefined ? readInstant(text) : new Date(now.getTime() + span);
}

const INSTANT =
  /^(\d{4}-\d{2}-\d{2})(?:T(?:[01]\d|2[0-3]):\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:\d{2}))?$/;
/** PostgreSQL has no year 0, and no part of Fleetbook has data of a time before 1970. */
const EARLIEST = 0;
/** The year in UTC has four digits, so that texts of instants sort by time. */
const LATEST = Date.UTC(10_000, 0) - 1;

/** Parses a date in UTC or an RFC 3339 time of the years 1970 to 9999; undefined for any other text. */
export function readInstant(text: string): Date | undefined {
  const [, date] = INSTANT.exec(text) ?? [];
  if (date === undefined) return undefined;
  const at = new Date(text);
  const day = new Date(date);
  // JavaScript reads February 30 as March 2.
  const isReal = !Number.isNaN(day.getTime()) && day.toISOString().startsWith(date);
  return isReal && at.getTime() >= EARLIEST && at.getTime() <= LATEST ? at : undefined;
}

export const SINCE_FORMS = '24h, 7d, 2026-01-31 or 2026-01-31T12:00:00Z';

/** Parses a time that is not in the future; otherwise returns the problem. */
export function sinceOf(text: string, now: Date): Date | 'no time' | 'ahead' {
  const at = readPast(text, now);
  if (at === undefined) return 'no time';
  return at > now ? 'ahead' : at;
}
