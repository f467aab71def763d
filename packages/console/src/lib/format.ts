/** Formats numbers and times. */
import { hourly, noun } from '../../../../src/domain/text/quantities.ts';
import { span } from '../../../../src/domain/text/time-span.ts';

export { hourly, span };

const NUMBERS = new Intl.NumberFormat('en');
export const count = (n: number): string => NUMBERS.format(n);

/** `1,234.50`, as amounts of a month are shown. */
export const money = (amount: number): string =>
  amount.toLocaleString('en', { minimumFractionDigits: 2, maximumFractionDigits: 2 });

/** `1 machine`, `2 batches`. */
export const counted = (n: number, what: string): string => `${count(n)} ${noun(n, what)}`;

export function ago(instant: string, now: Date): string {
  return `${span(Math.max(0, (now.getTime() - Date.parse(instant)) / 1000))} ago`;
}

/** `8 GiB`, `8 GB` */
export const memory = ({ ram, ramUnit }: { ram: number; ramUnit: string }): string =>
  `${ram} ${ramUnit === 'Binary' ? 'GiB' : 'GB'}`;

/** `in 12 min`; `now` if the instant has passed. */
export function ahead(instant: string, now: Date): string {
  const seconds = (Date.parse(instant) - now.getTime()) / 1000;
  return seconds <= 0 ? 'now' : `in ${span(seconds)}`;
}

/** `2026-01-31 12:05 UTC` */
export const utc = (instant: string): string => `${instant.slice(0, 16).replace('T', ' ')} UTC`;

/**
 * Returns the labels of a time axis in UTC: `12:05`, with the date below the first label of each day. If the labels are a day
 * or more apart, they are dates.
 * @param seconds since 1970
 */
export function axisTimes(seconds: readonly number[]): string[] {
  const isDaily = (seconds[1] ?? 0) - (seconds[0] ?? 0) >= 86_400;
  let shown = '';
  return seconds.map((each) => {
    const text = new Date(each * 1000).toISOString();
    const day = text.slice(0, 10);
    if (isDaily) return day;
    const label = day === shown ? text.slice(11, 16) : `${text.slice(11, 16)}\n${day}`;
    shown = day;
    return label;
  });
}
