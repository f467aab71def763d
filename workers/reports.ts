/** What a worker says of itself now and then, for the charts of the console: publication lag and queue depth. */
import { randomBytes } from 'node:crypto';
import type { Sql } from '../src/db/client.ts';
import { readLineage } from '../src/db/reads/lineage.ts';
import { dirtyDocumentCounts } from '../src/db/reads/operating.ts';
import type { RedisClient } from '../src/db/redis.ts';
import { addReport } from '../src/db/reports.ts';
import { REPORT_EVERY_MS, type WorkerReport } from '../src/domain/report.ts';
import { withTimeout } from '../src/domain/timeout.ts';
import { CacheKeys } from '../src/snapshot/document/keys.ts';
import { lanesOf } from '../src/snapshot/document/lanes.ts';
import type { CompareObserver } from './compare.ts';

export interface LagObserver extends CompareObserver {
  /** For how many seconds the cache lacked what it lacked, the longest since the last question; null where nobody knows. */
  take(): number | null;
}

/** Milliseconds after which the last comparison says nothing of now, unless comparisons are further apart. */
const KNOWN_FOR_MS = 60_000;

/** @param everyMs milliseconds between two rounds of the comparer; 0 where there are none */
export function lagObserver(
  everyMs: number,
  next?: CompareObserver,
  now: () => number = Date.now,
): LagObserver {
  let round: { readonly at: number; readonly seconds: number } | undefined;
  let caughtUp = 0;
  return {
    compared: (verdict) => next?.compared(verdict),
    caughtUp(seconds) {
      caughtUp = Math.max(caughtUp, seconds);
      next?.caughtUp(seconds);
    },
    round(at, stalestSeconds) {
      round = { at: now(), seconds: stalestSeconds };
      next?.round(at, stalestSeconds);
    },
    take() {
      const isKnown = round !== undefined && now() - round.at <= Math.max(KNOWN_FOR_MS, 2 * everyMs);
      const longest = isKnown ? Math.max(caughtUp, round?.seconds ?? 0) : null;
      caughtUp = 0;
      return longest;
    },
  };
}

/** Of BullMQ's, what a report needs. */
interface CountedQueue {
  readonly name: string;
  getWaitingCount(): Promise<number>;
}

export interface WorkerReportsOptions {
  readonly sql: Sql;
  readonly cache: RedisClient;
  readonly queues: readonly CountedQueue[];
  readonly lag: Pick<LagObserver, 'take'>;
  readonly everyMs?: number;
}

/** Milliseconds that Postgres and the queues' Redis may take; what they do not say by then is not told. */
const ANSWER_WITHIN_MS = 2000;

/** Sends a report now and then; one that cannot be sent is given up. */
export function reportWorker({
  sql,
  cache,
  queues,
  lag,
  everyMs = REPORT_EVERY_MS,
}: WorkerReportsOptions): AsyncDisposable {
  const process = randomBytes(6).toString('hex');
  let number = 0;
  let sending: Promise<void> | undefined;
  const report = async () => {
    const [lineage, dirty, waiting] = await Promise.all([
      inTime(readLineage(sql)),
      inTime(dirtyDocumentCounts(sql)),
      inTime(Promise.all(queues.map(async (queue) => [queue.name, await queue.getWaitingCount()] as const))),
    ]);
    if (lineage === null || cache.status !== 'ready') return;
    const told: WorkerReport = {
      kind: 'worker',
      process,
      number,
      seconds: everyMs / 1000,
      lagSeconds: lag.take(),
      dirty: dirty && Object.values(dirty).reduce((sum: number, count: number) => sum + count, 0),
      waiting: waiting && Object.fromEntries(waiting),
    };
    number += 1;
    await addReport(cache, new CacheKeys(lineage, lanesOf(cache)).reports, JSON.stringify(told));
  };
  const timer = setInterval(() => {
    sending ??= report()
      .catch(() => {})
      .finally(() => {
        sending = undefined;
      });
  }, everyMs);
  return {
    async [Symbol.asyncDispose]() {
      clearInterval(timer);
      await sending;
    },
  };
}

/** Null for what fails, or takes too long. */
async function inTime<T>(asked: Promise<T>): Promise<T | null> {
  let answer: T | null = null;
  const kept = asked.then((found) => {
    answer = found;
  });
  await withTimeout(ANSWER_WITHIN_MS, kept).catch(() => false);
  return answer;
}
