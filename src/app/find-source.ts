/** Finds the source of old data, and when it runs next, from the schedules that workers store in the cache. */
import type { FindSource, NextRun } from '../http/protocol/max-age.ts';
import { SCHEDULES_KEY } from '../snapshot/document/keys.ts';
import type { Documents } from '../snapshot/read/documents.ts';
import type { CacheLink } from '../snapshot/read/link.ts';

const READ_EVERY_MS = 1000;
/** Most seconds until the next attempt if a run is overdue, and may end at any time. */
const OVERDUE_RETRY_AFTER_S = 60;

export function sourceFinder(
  { freshness }: Pick<Documents, 'freshness'>,
  link: Pick<CacheLink, 'commands'>,
  now: () => number = Date.now,
): FindSource {
  let schedules: Promise<Record<string, string> | undefined> | undefined;
  let readAt = Number.NEGATIVE_INFINITY;
  const readSchedules = async () => {
    if (performance.now() - readAt > READ_EVERY_MS) {
      readAt = performance.now();
      schedules = link.commands.run((redis) => redis.hgetall(SCHEDULES_KEY));
    }
    return schedules;
  };
  return async (asOf) => {
    const source = freshness.sourceAt(asOf);
    if (!source) return undefined;
    const schedule = (await readSchedules().catch(() => undefined))?.[source.id];
    return {
      id: source.isOfClusters ? undefined : source.id,
      nextRun: schedule === undefined ? undefined : await nextRun(schedule, new Date(asOf), new Date(now())),
    };
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
