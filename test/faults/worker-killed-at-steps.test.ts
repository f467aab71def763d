/** A worker that is killed at each named step of a sync and of a publication, and its successor. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../support/until.ts';
import { few, STEPS_OF } from './support/steps.ts';
import { openWorkerStack, runsOf, SOURCE, untilSound, type WorkerStack } from './support/worker-stack.ts';

/** Enough for several groups of rows at each stage. */
const OFFERS = 2500;

let stack: WorkerStack;
beforeAll(async () => {
  stack = await openWorkerStack({ offers: OFFERS });
});
afterAll(() => stack[Symbol.asyncDispose]());

async function dieAt(step: string): Promise<void> {
  await stack.makeSlotDue();
  await using dying = await stack.startWorker({ DIE_AT: step });
  const late = setTimeout(() => dying.child.kill('SIGTERM'), 60_000);
  const exit = await dying.exited;
  clearTimeout(late);
  if (exit.signal !== 'SIGKILL') throw new Error(`it never came to this step:\n${dying.output()}`);
  await stack.expireLocks();
}

const goodRuns = async () =>
  (await runsOf(stack)).filter(({ slot, outcome }) => slot !== null && /changed|held/.test(outcome));
const openJobs = () => stack.queue.getJobCountByTypes('active', 'waiting', 'delayed', 'failed');

describe('after a worker is killed', () => {
  it.each(few(STEPS_OF.stored))(
    '%s, the next one leaves all in order, and the slot was run once',
    async (step) => {
      stack.upstream.edition += 1;
      await dieAt(step);
      await using next = await stack.startWorker();
      await until(async () => (await goodRuns()).length > 0, {
        timeoutMs: 60_000,
        what: 'a run of the slot',
      });
      await untilSound(stack, next);
      expect(await stack.served()).toEqual([stack.upstream.edition]);
      await until(async () => (await openJobs()) === 0);
      expect(await goodRuns()).toHaveLength(1);
    },
  );

  it.each(few(STEPS_OF.held))('%s, one batch is held, and its run has this outcome', async (step) => {
    const before = await stack.served();
    // The batch of the step before is pending, and one with the same content would not be stored again.
    stack.upstream.edition += 1;
    stack.upstream.repricesAll = true;
    await dieAt(step);
    await using next = await stack.startWorker();
    await until(async () => (await goodRuns()).length > 0, { timeoutMs: 60_000, what: 'a run of the slot' });
    await untilSound(stack, next);
    stack.upstream.repricesAll = false;
    expect(await stack.served()).toEqual(before);
    expect((await goodRuns()).map(({ outcome }) => outcome)).toEqual(['held']);
    const held = await stack.store.sql`
      select count(*)::integer as batches from held_batches where status = 'pending' and source_id = ${SOURCE}`;
    expect(held).toEqual([{ batches: 1 }]);
  });
});
