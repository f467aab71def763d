/** How statements write instants. It loads no driver: the thread of the exports uses it without a connection. */
import type { Sql } from './client.ts';

/** Patterns of `to_char`: to the second, the millisecond and the microsecond. */
export const PATTERNS = {
  s: `'YYYY-MM-DD"T"HH24:MI:SS"Z"'`,
  ms: `'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'`,
  us: `'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'`,
} as const;

export type Precision = keyof typeof PATTERNS;

/** Returns SQL that writes an instant as RFC 3339 in UTC; null for null. @param time SQL, never input, e.g. `r.started_at` */
export function instantText(time: string, precision: Precision): string {
  return `to_char(${time} at time zone 'UTC', ${PATTERNS[precision]})`;
}

/** Returns the same as a part of a statement of postgres.js. */
export function instant(sql: Pick<Sql, 'unsafe'>, time: string, precision: Precision = 's') {
  return sql.unsafe(instantText(time, precision));
}
