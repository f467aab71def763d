/** How old the data of a source may get: the objective that its freshness is compared with. */
import { CronExpressionParser } from 'cron-parser';

/** Intervals of the schedule after which the data is too old, unless a setting says otherwise. */
const INTERVALS = 3;
const DAY_S = 86_400;
/** Seconds: ten years, the most that can be configured. */
export const LONGEST_MAX_AGE = 3660 * DAY_S;
/** From here the days of schedules are walked, for a year; any year does. */
const FROM = new Date('2026-01-01T00:00:00Z');

/** Seconds; the default of `maxAge`. @param schedule five cron fields, which have been checked */
export function defaultMaxAge(schedule: string): number {
  return INTERVALS * longestInterval(schedule);
}

/**
 * The longest time between two slots of a schedule in seconds: of one that is due on working days only, that over the
 * weekend.
 */
export function longestInterval(schedule: string): number {
  const { fields } = CronExpressionParser.parse(schedule, { tz: 'UTC' });
  const times = numbers(fields.hour.values).flatMap((hour) =>
    numbers(fields.minute.values).map((minute) => (hour * 60 + minute) * 60),
  );
  const first = Math.min(...times);
  const last = Math.max(...times);
  let longest = longestDayGap(schedule) * DAY_S - last + first;
  let before = first;
  for (const time of times.sort((one, other) => one - other)) {
    longest = Math.max(longest, time - before);
    before = time;
  }
  return longest;
}

/** Days from one day of the schedule to the next, the most. */
function longestDayGap(schedule: string): number {
  const days = schedule.trim().split(/\s+/).slice(2);
  if (days.every((field) => field === '*')) return 1;
  const walk = CronExpressionParser.parse(`0 0 ${days.join(' ')}`, { tz: 'UTC', currentDate: FROM });
  let longest = 0;
  let before = walk.next().getTime();
  const until = before + 366 * DAY_S * 1000;
  while (before < until) {
    const next = walk.next().getTime();
    longest = Math.max(longest, (next - before) / 1000 / DAY_S);
    before = next;
  }
  return longest;
}

function numbers(values: readonly unknown[]): number[] {
  return values.map(Number);
}
