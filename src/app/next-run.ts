/** Finds when the source of old data runs next, from the schedules that workers store in the cache. */
import type { FindNextRun, NextRun } from '../http/protocol/max-age.ts';
import { SCHEDULES_KEY } from '../snapshot/document/keys.ts';
import type { CacheSubscription } from '../snapshot/read/cache-subscription.ts';
import type { Documents } from '../snapshot/read/documents.ts';

const READ_EVERY_MS = 1000;
/** Most seconds until the next attempt if a run is overdue, and may end at any time. */
const OVERDUE_RETRY_AFTER_S = 60;

export function nextRunFinder(
  { freshness }: Pick<Documents, 'freshness'>,
  subscription: Pick<CacheSubscription, 'commands'>,
  now: () => number = Date.now,
): FindNextRun {
  let schedules: Promise<Record<string, string> | undefined> | undefined;
  let readAt = Number.NEGATIVE_INFINITY;
  const readSchedules = () => {
    if (performance.now() - readAt > READ_EVERY_MS) {
      readAt = performance.now();
      schedules = subscription.commands.run((redis) => redis.hgetall(SCHEDULES_KEY));
    }
    return schedules;
  };
  return async (asOf) => {
    const source = freshness.sourceAt(asOf);
    const schedule = source === undefined ? undefined : (await readSchedules())?.[source];
    return schedule === undefined ? undefined : nextRun(schedule, new Date(asOf), new Date(now()));
  };
}

/** @param schedule five cron fields @param asOf the start of the last good run */
export async function nextRun(schedule: string, asOf: Date, now: Date): Promise<NextRun> {
  // The parser of schedules would slow the start of every reader.
  const { nextSlot } = await import('../domain/schedule.ts');
  const dueAt = nextSlot(schedule, now);
  const seconds = Math.max(1, Math.ceil((Date.parse(dueAt) - now.getTime()) / 1000));
  const isOverdue = Date.parse(nextSlot(schedule, asOf)) <= now.getTime();
  return { dueAt, retryAfterSeconds: isOverdue ? Math.min(seconds, OVERDUE_RETRY_AFTER_S) : seconds };
}
