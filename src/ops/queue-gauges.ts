/** What waits in the queues and what runs. */
import type { Job, Queue } from 'bullmq';
import type { Registry } from 'prom-client';
import { gaugesOf, latest, type Series, WAIT_MS } from './latest.ts';

/** As BullMQ calls them; a job that waits to be tried again is delayed. */
const STATES = ['waiting', 'active', 'delayed', 'completed', 'failed'] as const;

interface QueueFacts {
  readonly queue: string;
  readonly isPaused: boolean;
  readonly counts: Readonly<Record<string, number>>;
  /** Seconds for which the oldest job waits or runs; 0 where none does. */
  readonly oldest: { readonly waiting: number; readonly active: number };
}

export interface QueueGaugesOptions {
  /** Milliseconds since the epoch. */
  readonly now?: () => number;
  /** Milliseconds that a scrape waits for Redis. */
  readonly waitMs?: number;
}

/**
 * Gauges of queues. Where Redis does not answer they tell nothing but that, and a scrape neither fails nor hangs: how
 * many jobs there were says nothing about how many there are.
 */
export function addQueueGauges(
  registry: Registry,
  queues: readonly Queue[],
  { now = Date.now, waitMs = WAIT_MS }: QueueGaugesOptions = {},
): void {
  const waitingSince = new Map(queues.map((queue) => [queue, sinceWhenWaiting(now)]));
  const facts = latest<readonly QueueFacts[]>(
    () => Promise.all(queues.map((queue) => read(queue, waitingSince.get(queue) ?? (() => now()), now))),
    [],
    waitMs,
  );
  const told = gaugesOf(registry, facts);
  const gauge: typeof told = (name, help, labels, series) =>
    told(name, help, labels, (read) => (facts.isAnswered ? series(read) : []));

  told('fleetbook_queue_reachable', '1 while the queues’ Redis answers, else 0', [], () => [
    [{}, facts.isAnswered ? 1 : 0],
  ]);
  gauge('fleetbook_queue_jobs', 'Jobs of the queue, by state', ['queue', 'state'], (read) =>
    read.flatMap(({ queue, counts }) =>
      STATES.map((state): Series => [{ queue, state }, counts[state] ?? 0]),
    ),
  );
  gauge(
    'fleetbook_queue_oldest_job_seconds',
    'For how long the oldest job has waited to be begun, or has run (state active); 0 where there is none',
    ['queue', 'state'],
    (read) =>
      read.flatMap(({ queue, oldest }) =>
        Object.entries(oldest).map(([state, seconds]): Series => [{ queue, state }, seconds]),
      ),
  );
  gauge('fleetbook_queue_paused', '1 for a queue whose jobs somebody has paused, else 0', ['queue'], (read) =>
    read.map(({ queue, isPaused }): Series => [{ queue }, isPaused ? 1 : 0]),
  );
}

async function read(queue: Queue, since: (job: Job) => number, now: () => number): Promise<QueueFacts> {
  const [counts, isPaused, [next], active] = await Promise.all([
    queue.getJobCounts(...STATES),
    queue.isPaused(),
    queue.getJobs(['waiting'], 0, 0, true),
    queue.getJobs(['active']),
  ]);
  const age = (instant: number | undefined) =>
    instant === undefined ? 0 : Math.max(0, (now() - instant) / 1000);
  // A job may have gone between the list and the look at it.
  const begun = active.flatMap((job) => job?.processedOn ?? []);
  return {
    queue: queue.name,
    isPaused,
    counts,
    oldest: {
      waiting: age(next && since(next)),
      active: age(begun.length > 0 ? Math.min(...begun) : undefined),
    },
  };
}

/**
 * Since when the next job waits. BullMQ knows that of a job that was never delayed; of one that is tried again it
 * forgets it, and it counts from the first look that finds the job waiting: a little less than it was.
 */
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
