/** When a schedule is due. */
import { CronExpressionParser } from 'cron-parser';

/** The latest slot at or before `now`, RFC 3339. Pure arithmetic: every worker finds the same. */
export function latestSlot(expression: string, now: Date): string {
  // A millisecond later, since the parser looks strictly before.
  const after = new Date(now.getTime() + 1);
  return slotText(CronExpressionParser.parse(expression, { currentDate: after, tz: 'UTC' }).prev().toDate());
}

/** The first slot after `now`, RFC 3339. */
export function nextSlot(expression: string, now: Date): string {
  return slotText(CronExpressionParser.parse(expression, { currentDate: now, tz: 'UTC' }).next().toDate());
}

/** So many slots after `now`, RFC 3339, the first one first. */
export function nextSlots(expression: string, now: Date, count: number): string[] {
  return CronExpressionParser.parse(expression, { currentDate: now, tz: 'UTC' })
    .take(count)
    .map((slot) => slotText(slot.toDate()));
}

const slotText = (date: Date): string => `${date.toISOString().slice(0, 19)}Z`;
