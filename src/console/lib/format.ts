/** How amounts and times are written for people. */
import { hourly } from '../../domain/hourly.ts';
import { span } from '../../domain/span.ts';

export { hourly, span };

export const count = (n: number): string => n.toLocaleString('en');

/** `1 machine`, `2 machines`. */
export const counted = (n: number, what: string): string => `${count(n)} ${what}${n === 1 ? '' : 's'}`;

export function ago(instant: string, now: Date): string {
  return `${span(Math.max(0, (now.getTime() - Date.parse(instant)) / 1000))} ago`;
}

/** The time until an instant: `in 12 min`, or `now`. */
export function ahead(instant: string, now: Date): string {
  const seconds = (Date.parse(instant) - now.getTime()) / 1000;
  return seconds <= 0 ? 'now' : `in ${span(seconds)}`;
}

/** `2026-01-31 12:05 UTC` */
export const utc = (instant: string): string => `${instant.slice(0, 16).replace('T', ' ')} UTC`;
