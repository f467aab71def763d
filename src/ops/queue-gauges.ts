import type { Job, Queue } from 'bullmq';
import type { Registry } from 'prom-client';
import { gaugesOf, latest, type Series } from './scrape-reads.ts';

const STATES = ['waiting', 'active', 'delayed', 'completed', 'failed'] as const;

interface QueueFacts {
  readonly queue: string;
  readonly isPaused: boolean;
  readonly counts: Readonly<Record<string, number>>;
  readonly oldest: { readonly waiting: number; readonly active: number };
}

/**
 * Adds gauges of queues. While Redis does not answer, only `fleetbook_queue_reachable` has a series: old counts of jobs would
 * mislead. A scrape neither fails nor hangs.
 */
export function addQueueGauges(
  registry: Registry,
  queues: readonly Queue[],
  { now = Date.now, waitMs }: { readonly now?: () => number; readonly waitMs?: number } = {},
): void {
  const reads = queues.map((queue) => readerOf(queue, now));
  const readAll = () => Promise.all(reads.map((read) => read()));
  const facts = latest<readonly QueueFacts[]>(readAll, [], waitMs);
  const addGauge = gaugesOf(registry, facts);
  const gauge: typeof addGauge = (name, help, labels, series) =>
    addGauge(name, help, labels, (read) => (facts.isAnswered ? series(read) : []));

  addGauge('fleetbook_queue_reachable', '1 while the queues’ Redis answers, else 0', [], () => [
    [{}, facts.isAnswered ? 1 : 0],
  ]);
  gauge('fleetbook_queue_jobs', 'Jobs of the queue, by state', ['queue', 'state'], (read) =>
    read.flatMap(({ queue, counts }) =>
      STATES.map((state): Series => [{ queue, state }, counts[state] ?? 0]),
    ),
  );
  gauge(
    'fleetbook_queue_oldest_job_seconds',
    'Time for which the oldest job has waited to start, or has run (state active); 0 without one',
    ['queue', 'state'],
    (read) =>
      read.flatMap(({ queue, oldest }) =>
        Object.entries(oldest).map(([state, seconds]): Series => [{ queue, state }, seconds]),
      ),
  );
  gauge('fleetbook_queue_paused', '1 for a paused queue, else 0', ['queue'], (read) =>
    read.map(({ queue, isPaused }): Series => [{ queue }, isPaused ? 1 : 0]),
  );
}

function readerOf(queue: Queue, now: () => number): () => Promise<QueueFacts> {
  const since = sinceWhenWaiting(now);
  const age = (instant: number) => Math.max(0, (now() - instant) / 1000);
  return async () => {
    const [counts, isPaused, [next], active] = await Promise.all([
      queue.getJobCounts(...STATES),
      queue.isPaused(),
      queue.getJobs(['waiting'], 0, 0, true),
      queue.getJobs(['active']),
    ]);
    // A job may be removed between the list and the read of its data.
    const begun = active.flatMap((job) => job?.processedOn ?? []);
    const waiting = next ? age(since(next)) : 0;
    const running = begun.length > 0 ? age(Math.min(...begun)) : 0;
    return { queue: queue.name, isPaused, counts, oldest: { waiting, active: running } };
  };
}

/** Returns since when the next job waits; a retried job waits since the first scrape that found it waiting. */
function sinceWhenWaiting(now: () => number): (job: Job) => number {
  let next:
    | { readonly id: string | undefined; readonly attempts: number; readonly since: number }
    | undefined;
  return ({ id, attemptsMade, timestamp, opts }) => {
    if (next?.id === id && next?.attempts === attemptsMade) return next.since;
    const wasDelayed = attemptsMade > 0 || (opts.delay ?? 0) > 0;
    next = { id, attempts: attemptsMade, since: wasDelayed ? now() : timestamp };
    return next.since;
  };
}
