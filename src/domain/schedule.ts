/** Schedules: five cron fields in UTC, their slots, and their text for people. */
import { CronExpressionParser } from 'cron-parser';

/** Returns the latest slot at or before `now`, RFC 3339. Every worker computes the same slot. */
export function latestSlot(expression: string, now: Date): string {
  // The parser excludes `currentDate` itself.
  const after = new Date(now.getTime() + 1);
  return slotText(CronExpressionParser.parse(expression, { currentDate: after, tz: 'UTC' }).prev().toDate());
}

export function nextSlot(expression: string, now: Date): string {
  return slotText(CronExpressionParser.parse(expression, { currentDate: now, tz: 'UTC' }).next().toDate());
}

export function nextSlots(expression: string, now: Date, count: number): string[] {
  return CronExpressionParser.parse(expression, { currentDate: now, tz: 'UTC' })
    .take(count)
    .map((slot) => slotText(slot.toDate()));
}

const slotText = (date: Date): string => `${date.toISOString().slice(0, 19)}Z`;

const DAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday'];
const MONTH = new Intl.DateTimeFormat('en', { month: 'long', timeZone: 'UTC' });

/**
 * Returns the schedule as text, e.g. `every 6 hours at minute 17 UTC` or `every Monday at 03:00 UTC`. A wrong text is
 * worse than none, so rare forms stay cron: `cron 5 4 * 2 1 UTC`.
 * @param expression five valid cron fields
 */
export function scheduleInWords(expression: string): string {
  const fields = expression.trim().split(/\s+/);
  return textOf(fields) ?? `cron ${fields.join(' ')} UTC`;
}

function textOf([minutes = '', hours = '', day = '', month = '', weekday = '']: string[]):
  | string
  | undefined {
  const isDaily = day === '*' && month === '*' && weekday === '*';
  if (isDaily && hours === '*') return withinTheHour(minutes);
  const minute = numberOf(minutes, 0, 59);
  const everyHours = stepOf(hours, 24);
  if (isDaily && everyHours !== undefined) return everyFewHours(everyHours, minutes, minute);
  const times = minute === undefined ? undefined : timesOf(hours, minute);
  const days = daysOf(day, month, weekday);
  return times === undefined || days === undefined ? undefined : `every ${days} at ${times} UTC`;
}

function withinTheHour(minutes: string): string | undefined {
  if (minutes === '*') return 'every minute';
  const step = stepOf(minutes, 60);
  if (step !== undefined) {
    const from = step.from === 0 ? '' : `, from minute ${step.from}`;
    return step.every === 1 ? 'every minute' : `every ${step.every} minutes${from}`;
  }
  const list = numbersIn(minutes, 0, 59);
  if (list === undefined) return undefined;
  return `every hour at ${list.length === 1 ? 'minute' : 'minutes'} ${and(list.map(String))} UTC`;
}

function everyFewHours(
  { every, from }: Step,
  minutes: string,
  minute: number | undefined,
): string | undefined {
  if (every === 1) return withinTheHour(minutes);
  if (minute === undefined) return undefined;
  const begins = from === 0 ? '' : `, from ${clock(from, minute)}`;
  return `every ${every} hours at minute ${minute}${begins} UTC`;
}

function timesOf(hours: string, minute: number): string | undefined {
  const list = numbersIn(hours, 0, 23);
  return list && and(list.map((hour) => clock(hour, minute)));
}

function daysOf(day: string, month: string, weekday: string): string | undefined {
  if (weekday !== '*') {
    if (day !== '*' || month !== '*') return undefined;
    const [first, last] = weekday.split('-').map((part) => numberOf(part, 0, 7));
    if (/^\d-\d$/.test(weekday) && first !== undefined && last !== undefined)
      return first < last ? `day from ${DAYS[first]} to ${DAYS[last]}` : undefined;
    const list = numbersIn(weekday, 0, 7);
    return list && and(list.map((each) => DAYS[each] ?? ''));
  }
  if (day === '*') return month === '*' ? 'day' : undefined;
  const days = numbersIn(day, 1, 31);
  const months = month === '*' ? [] : numbersIn(month, 1, 12);
  if (days === undefined || months === undefined) return undefined;
  if (months.length === 0) return `month on day${days.length === 1 ? '' : 's'} ${and(days.map(String))}`;
  if (days.length > 1 || months.length > 1) return undefined;
  return `year on ${days[0]} ${MONTH.format(Date.UTC(2000, (months[0] ?? 1) - 1))}`;
}

interface Step {
  readonly every: number;
  readonly from: number;
}

/** Returns a step that divides the whole day or hour evenly, of `*` or of a range; undefined for any other field. */
function stepOf(field: string, whole: number): Step | undefined {
  const [, range = '', step = ''] = /^(\*|\d{1,2}-\d{1,2})\/(\d{1,2})$/.exec(field) ?? [];
  const every = Number(step);
  if (every === 0 || whole % every !== 0 || every === whole) return undefined;
  if (range === '*') return { every, from: 0 };
  const [from = 0, to = 0] = range.split('-').map(Number);
  const isWhole = from < every && to < whole && to >= whole - every + from;
  return isWhole ? { every, from } : undefined;
}

function numberOf(field: string, from: number, to: number): number | undefined {
  const number = /^\d{1,2}$/.test(field) ? Number(field) : Number.NaN;
  return number >= from && number <= to ? number : undefined;
}

/** Returns a list of numbers in order; undefined for any other field. */
function numbersIn(field: string, from: number, to: number): number[] | undefined {
  const numbers = field.split(',').map((part) => numberOf(part, from, to));
  if (!numbers.every((number) => number !== undefined)) return undefined;
  return [...new Set(numbers)].sort((one, other) => one - other);
}

const clock = (hour: number, minute: number): string =>
  `${String(hour).padStart(2, '0')}:${String(minute).padStart(2, '0')}`;

function and(words: readonly string[]): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`;
}
