/** A worker that is killed repeatedly at random moments while it syncs many offers. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { requestAttempt } from '../../src/sync/runs/slots.ts';
import type { Program } from '../support/program.ts';
import { until } from '../support/until.ts';
import { Prober } from './support/prober.ts';
import { record } from './support/row.ts';
import { openWorkerStack, runsOf, SOURCE, untilSound, type WorkerStack } from './support/worker-stack.ts';

const OFFERS = Number(process.env.FAULT_OFFERS ?? 50_000);
/** 200 in the long form. */
const KILLS = Number(process.env.FAULT_KILLS ?? 10);
/** After this many stored editions a guard stops one. */
const HELD_EVERY = 5;
/** The lock of a job expires after ten seconds and is checked every five. Then the source is read again. */
const RECOVERS_WITHIN_S = 60;

let stack: WorkerStack;
let worker: Program | undefined;
beforeAll(async () => {
  stack = await openWorkerStack({ offers: OFFERS });
});
afterAll(async () => {
  await worker?.[Symbol.asyncDispose]();
  await stack[Symbol.asyncDispose]();
});

const openJobs = () => stack.openWork();
const isUnderWay = async () => (await runsOf(stack)).at(-1)?.outcome === 'running';

/** Requests another run if none is due. */
async function keepBusy(mayBeHeld: boolean): Promise<void> {
  if ((await openJobs()) > 0) return;
  stack.upstream.edition += 1;
  stack.upstream.repricesAll = mayBeHeld && stack.upstream.edition % HELD_EVERY === 0;
  const slot = { schedule: SOURCE, slot: new Date().toISOString() };
  await requestAttempt(stack.store.db, slot, { cause: 'hand' });
}

it(`${KILLS} kills leave nothing torn, doubled, lost or without an owner`, {
  timeout: 600_000 + KILLS * 30_000,
}, async () => {
  // CI repeats a failed test once.
  await worker?.[Symbol.asyncDispose]();
  worker = await stack.startWorker();
  const began = performance.now();
  await until(async () => (await stack.served()).length === 1, { timeoutMs: 120_000, everyMs: 100 });
  await untilSound(stack, worker);
  const syncMs = performance.now() - began;
  await using prober = new Prober(stack);
  for (let kill = 0; kill < KILLS; kill++) {
    // A worker that was killed between the end of its run and that of its attempt leaves due work and no further run.
    await until(
      async () => {
        await keepBusy(true);
        return isUnderWay();
      },
      { timeoutMs: 60_000 },
    );
    await sleep(Math.random() * syncMs);
    worker.child.kill('SIGKILL');
    await worker.exited;
    // A source that ends its process twice is disabled. These deaths are not its own.
    await stack.store.sql`update sync_runs set alone = null`;
    // The last run may take any time.
    if (kill < KILLS - 1) await stack.expireLocks();
    worker = await stack.startWorker();
  }
  const healed = performance.now();
  await until(async () => (await openJobs()) === 0, { timeoutMs: 300_000, everyMs: 100 });
  await untilSound(stack, worker);
  const recoverySeconds = Math.round((performance.now() - healed) / 100) / 10;
  // A stored batch replaces any held one.
  await keepBusy(false);
  await until(async () => (await openJobs()) === 0, { timeoutMs: 120_000, everyMs: 100 });
  await untilSound(stack, worker);
  const served = await stack.served();
  const lost = served.filter((edition) => edition !== stack.upstream.edition).length;

  await prober[Symbol.asyncDispose]();
  record({
    fault: `The worker is killed ${KILLS} times at random while ${OFFERS} offers are synced`,
    ...prober.figures(),
    lost,
    recoverySeconds,
  });
  expect(served).toEqual([stack.upstream.edition]);
  expect(prober.troubles()).toEqual({});
  const failed = await stack.queue.getFailed();
  expect(failed.map(({ failedReason }) => failedReason)).toEqual([]);
  expect(recoverySeconds).toBeLessThan(RECOVERS_WITHIN_S);
});
