/** Times since when something is asked for, as people give them. Pure. */
import { readPast } from './span.ts';

/** What would do in the place of a time that is none. */
export const SINCE_FORMS = '24h, 7d, 2026-01-31 or 2026-01-31T12:00:00Z';

/** A span up to `now` (`24h`, `7d`), a date in UTC, or a time in RFC 3339; else what is wrong with it. */
export function sinceOf(text: string, now: Date): Date | 'no time' | 'ahead' {
  const at = readPast(text, now);
  if (at === undefined) return 'no time';
  return at > now ? 'ahead' : at;
}
