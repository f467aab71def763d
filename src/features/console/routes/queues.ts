/** Reads the queues' Redis for the overview. Each read returns null if Redis does not answer in time. */
import type { Queue } from 'bullmq';
import { withTimeout } from '../../../domain/clock.ts';
import type { Steps } from '../queries/runs.ts';
import type { JobLines, QueueDepth } from './answers.ts';

const TIMEOUT_MS = 1000;
const MINUTE_S = 60;

export const queueDepths = (queues: readonly Queue[]): Promise<QueueDepth[] | null> =>
  inTime(TIMEOUT_MS, () =>
    Promise.all(
      queues.map(async (queue) => {
        const { waiting = 0, active = 0, delayed = 0, failed = 0 } = await queue.getJobCounts();
        return { name: queue.name, waiting, active, delayed, failed };
      }),
    ),
  );

type CountedQueue = Pick<Queue, 'name' | 'getMetrics'>;

export function jobCounts(
  queues: readonly CountedQueue[],
  window: Steps,
  timeoutMs = TIMEOUT_MS,
): Promise<JobLines | null> {
  const linesOf = async (type: 'completed' | 'failed') =>
    Object.fromEntries(
      await Promise.all(queues.map(async (queue) => [queue.name, await line(queue, type, window)] as const)),
    );
  return inTime(timeoutMs, async () => {
    const [completed, failed] = await Promise.all([linesOf('completed'), linesOf('failed')]);
    return { completed, failed };
  });
}

async function line(
  queue: CountedQueue,
  type: 'completed' | 'failed',
  { from, step, steps }: Steps,
): Promise<number[]> {
  const { meta, data } = await queue.getMetrics(type, 0, Math.ceil((step * steps) / MINUTE_S));
  const counts = Array.from({ length: steps }, () => 0);
  // The list has one count for each minute before that of the last recorded job, newest first. BullMQ extends it when the
  // next job ends. Until then `meta` has the jobs of the last minute.
  const last = Math.floor(meta.prevTS / 1000 / MINUTE_S);
  for (const [age, jobs] of [meta.count - meta.prevCount, ...data].entries()) {
    const index = Math.floor(((last - age) * MINUTE_S - from) / step);
    if (index >= 0 && index < steps) counts[index] = (counts[index] ?? 0) + jobs;
  }
  return counts;
}

async function inTime<T>(ms: number, read: () => Promise<T>): Promise<T | null> {
  const reading = read().catch(() => null);
  return (await withTimeout(ms, reading)) ? reading : null;
}
