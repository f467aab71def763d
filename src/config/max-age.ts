import { CronExpressionParser } from 'cron-parser';

/** Intervals of the schedule after which the data is too old. */
const INTERVALS = 3;
const DAY_S = 86_400;
/** Start of a year: the days of a schedule are compared within one year. Any year is suitable. */
const FROM = new Date('2026-01-01T00:00:00Z');

/** Returns the default of `maxAge` in seconds. @param schedule five valid cron fields */
export function defaultMaxAge(schedule: string): number {
  return INTERVALS * longestInterval(schedule);
}

/** Returns the longest time between two slots in seconds. For a schedule on working days it spans the weekend. */
export function longestInterval(schedule: string): number {
  const { fields } = CronExpressionParser.parse(schedule, { tz: 'UTC' });
  const times = fields.hour.values
    .map(Number)
    .flatMap((hour) => fields.minute.values.map((minute) => (hour * 60 + Number(minute)) * 60));
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
