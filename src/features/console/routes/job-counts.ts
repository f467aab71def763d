/** Ended jobs of the queues in steps of time, from BullMQ's own metrics. */
import type { Queue } from 'bullmq';
import type { Steps } from '../../../db/runs/records.ts';
import { withTimeout } from '../../../lib/timeout.ts';
import type { JobLines } from './api.ts';

type CountedQueue = Pick<Queue, 'name' | 'getMetrics'>;

const MINUTE_S = 60;

/**
 * Returns the jobs that ended in each step, by queue; null when Redis does not answer in time.
 * @param withinMs milliseconds that Redis may take
 */
export async function jobCounts(
  queues: readonly CountedQueue[],
  window: Steps,
  withinMs: number,
): Promise<JobLines | null> {
  let counts: JobLines | null = null;
  const linesOf = async (type: 'completed' | 'failed') =>
    Object.fromEntries(
      await Promise.all(queues.map(async (queue) => [queue.name, await line(queue, type, window)] as const)),
    );
  const read = Promise.all([linesOf('completed'), linesOf('failed')]).then(([completed, failed]) => {
    counts = { completed, failed };
  });
  await withTimeout(withinMs, read).catch(() => false);
  return counts;
}

async function line(
  queue: CountedQueue,
  type: 'completed' | 'failed',
  { from, step, steps }: Steps,
): Promise<number[]> {
  const { meta, data } = await queue.getMetrics(type, 0, Math.ceil((step * steps) / MINUTE_S));
  const counts = Array.from({ length: steps }, () => 0);
  // The list has one count for each minute before that of the last recorded job, newest first. BullMQ extends it when the
  // next job ends; the jobs of the last minute are in `meta` until then.
  const last = Math.floor(meta.prevTS / 1000 / MINUTE_S);
  for (const [age, jobs] of [meta.count - meta.prevCount, ...data].entries()) {
    const index = Math.floor(((last - age) * MINUTE_S - from) / step);
    if (index >= 0 && index < steps) counts[index] = (counts[index] ?? 0) + jobs;
  }
  return counts;
}
