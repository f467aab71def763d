/** A span of time for people: `45 s`, `12 min`, `3 h` or `4 d`. */
export function span(seconds: number): string {
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86_400)} d`;
}

const UNITS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 };

/** A span such as `90d`, `12h` or `30m` in milliseconds; undefined when it is none. */
export function readSpan(text: string): number | undefined {
  const [, amount, unit = ''] = /^([1-9]\d{0,4})([mhd])$/.exec(text) ?? [];
  const unitMs = UNITS[unit];
  return unitMs === undefined ? undefined : Number(amount) * unitMs;
}

/** A span before `now` (`24h`), or a date or a time in RFC 3339; undefined when it is neither. */
export function readPast(text: string, now: Date): Date | undefined {
  const span = readSpan(text);
  return span === undefined ? readInstant(text) : new Date(now.getTime() - span);
}

/** A span after `now` (`90d`), or a date or a time in RFC 3339; undefined when it is neither. */
export function readAhead(text: string, now: Date): Date | undefined {
  const span = readSpan(text);
  return span === undefined ? readInstant(text) : new Date(now.getTime() + span);
}

const INSTANT = /^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:\d{2}))?$/;

function readInstant(text: string): Date | undefined {
  const at = new Date(INSTANT.test(text) ? text : Number.NaN);
  return Number.isNaN(at.getTime()) ? undefined : at;
}
