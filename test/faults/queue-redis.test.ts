/** The Redis of the queues is killed, flushed, or fails over when a slot is due. The slot runs once, and soon. */
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { openRedis, redisReady } from '../../src/redis/redis.ts';
import { startTestSentinels } from '../engines/redis-sentinel.ts';
import { until } from '../support/until.ts';
import { Prober } from './support/prober.ts';
import { record } from './support/row.ts';
import { openWorkerStack, SOURCE, untilSound, type WorkerStack } from './support/worker-stack.ts';

const OFFERS = 2500;
const MINUTE = 60_000;
/** Seconds from the end of the fault until the end of the slot's run. */
const RUN_WITHIN_S = 90;

interface SlotFault {
  readonly fault: string;
  readonly queueUrl?: string;
  /** Runs ten seconds before the slot is due. */
  before(stack: WorkerStack): Promise<void> | void;
  /** Runs after the claim of the slot. */
  after(stack: WorkerStack): Promise<void> | void;
}

/**
 * Runs two workers, one slot that is due soon and then not for an hour, and the fault.
 * @returns the outcomes of the slot's runs
 */
async function aroundSlot({ fault, queueUrl, before, after }: SlotFault): Promise<string[]> {
  const due = new Date(Math.ceil((Date.now() + 50_000) / MINUTE) * MINUTE);
  await using stack = await openWorkerStack({
    offers: OFFERS,
    schedule: `${due.getUTCMinutes()} * * * *`,
    ...(queueUrl !== undefined && { queueUrl }),
  });
  await using worker = await stack.startWorker();
  await using _other = await stack.startWorker();
  await until(async () => (await stack.served()).length === 1, { timeoutMs: MINUTE, everyMs: 100 });
  await using prober = new Prober(stack);
  await sleep(due.getTime() - Date.now() - 10_000);
  stack.upstream.edition += 1;
  await before(stack);
  await until(async () => (await runsOfSlot(stack, due)).claimed, {
    timeoutMs: MINUTE,
    what: 'the slot is claimed',
  });
  await after(stack);
  const healed = performance.now();
  await until(async () => (await runsOfSlot(stack, due)).outcomes.includes('changed'), {
    timeoutMs: 2 * RUN_WITHIN_S * 1000,
    what: `the slot to be run after: ${fault}`,
  });
  const recoverySeconds = Math.round((performance.now() - healed) / 100) / 10;
  // A job that is still in the queue would run again.
  await until(async () => (await stack.queue.getJobCountByTypes('active', 'waiting', 'delayed')) === 0);
  await untilSound(stack, worker);
  const served = await stack.served();
  const lost = served.filter((edition) => edition !== stack.upstream.edition).length;
  await prober[Symbol.asyncDispose]();
  record({ fault, ...prober.figures(), lost, recoverySeconds });
  expect(served).toEqual([stack.upstream.edition]);
  expect(prober.troubles()).toEqual({});
  expect(recoverySeconds).toBeLessThan(RUN_WITHIN_S);
  return (await runsOfSlot(stack, due)).outcomes;
}

/** Returns whether a worker claimed the slot, and the outcomes of its runs, oldest first. */
async function runsOfSlot({ store }: WorkerStack, due: Date) {
  const slots = await store.sql`
    select from schedule_slots where schedule = ${SOURCE} and slot = ${due.toISOString()}`;
  const runs = await store.sql<{ outcome: string }[]>`
    select outcome from sync_runs where source_id = ${SOURCE} and slot = ${due.toISOString()} order by id`;
  return { claimed: slots.length > 0, outcomes: runs.map(({ outcome }) => outcome) };
}

describe('a slot runs once, and soon, if the Redis of the queues', { timeout: 6 * MINUTE }, () => {
  it('is down when the slot is due', async () => {
    const outcomes = await aroundSlot({
      fault: 'The Redis of the queues is killed, and back without a job after the slot of a source',
      before: ({ queueRedis }) => queueRedis.kill(),
      async after({ queueRedis }) {
        await sleep(3000);
        await queueRedis.restart();
      },
    });
    expect(outcomes).toEqual(['changed']);
  });

  it('is flushed while the job waits', async () => {
    const outcomes = await aroundSlot({
      fault: 'The Redis of the queues is flushed while the job of a slot waits in it',
      before: ({ queue }) => queue.pause(),
      async after({ queue, queueRedis }) {
        await until(async () => (await queue.getJobCountByTypes('waiting')) > 0);
        const redis = openRedis(queueRedis.url, 'producer', () => {});
        await redisReady(redis, 5000);
        await redis.flushall();
        redis.disconnect();
      },
    });
    expect(outcomes).toEqual(['changed']);
  });

  it('fails over', async () => {
    await using sentinels = await startTestSentinels();
    const outcomes = await aroundSlot({
      fault: 'The master of the queues is killed when a slot is due, and Sentinels name another',
      queueUrl: sentinels.url,
      async before() {
        const master = await sentinels.master();
        await sleep(9500);
        await master.kill();
        await sentinels.untilReplaced(master);
      },
      after() {},
    });
    expect(outcomes).toEqual(['changed']);
  });
});
