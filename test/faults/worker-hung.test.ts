/**
 * A worker that hangs for longer than its locks and its database session last, while another one takes over, and then
 * goes on with what it was about to do.
 */
import { readFile } from 'node:fs/promises';
import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { dirtyDocuments } from '../../src/db/versions.ts';
import type { Program } from '../support/program.ts';
import { until } from '../support/until.ts';
import { few } from './support/steps.ts';
import { openWorkerStack, runsOf, SOURCE, untilSound, type WorkerStack } from './support/worker-stack.ts';

const OFFERS = 2500;
/** Steps up to the commit: another worker does all of it once more. */
const BEFORE_COMMIT = [
  'before: job added',
  'before: slot noted as enqueued',
  'before: rows copied',
  'before: fence checked',
  'after: fence checked',
  'as "sync commit" begins',
];
/** What follows the commit, and is late when it comes. */
const AFTER_COMMIT = [
  'before: slot done with',
  'before: region sent to the cache',
  'before: documents marked as published',
  'before: ages sent to the cache',
  'before: job finished',
];
/** Steps of which the run is recorded when it hangs, and stores nothing. Whether its session had ended by then is chance. */
const RUNNING = new Set(BEFORE_COMMIT.slice(2));
let stack: WorkerStack;
beforeAll(async () => {
  stack = await openWorkerStack({ offers: OFFERS });
  await using worker = await stack.startWorker();
  await until(async () => (await runsOf(stack)).some(({ outcome }) => outcome === 'changed'), {
    timeoutMs: 60_000,
  });
  await untilSound(stack, worker);
});
afterAll(() => stack[Symbol.asyncDispose]());

const isStopped = async (pid: number) => /^State:\s+T/m.test(await readFile(`/proc/${pid}/status`, 'utf8'));

/** All that a late write could have changed. */
async function stored(): Promise<unknown> {
  const { sql } = stack.store;
  const [row] = await sql`
    select
      (select md5(string_agg(m::text, '|' order by m.id)) from machines m) as machines,
      (select md5(string_agg(p::text, '|' order by p.machine_id, p.valid_from)) from machine_prices p) as prices,
      (select md5(string_agg(r::text, '|' order by r.id)) from regions r) as regions,
      (select md5(string_agg(v::text, '|' order by v.source_id, v.url)) from source_validators v) as validators,
      (select md5(string_agg(concat(schedule, slot, due_at), '|' order by schedule, slot)) from schedule_slots
        where schedule in (select id from sources)) as slots`;
  return row;
}

it.each([...few(BEFORE_COMMIT), ...few(AFTER_COMMIT)])('%s, its late writes change nothing', async (step) => {
  stack.upstream.edition += 1;
  await stack.makeSlotDue();
  await using hung = await stack.startWorker({ HANG_AT: step });
  try {
    const hangs = { timeoutMs: 60_000, what: `a worker that hangs ${step}` };
    await until(() => isStopped(hung.pid), hangs);
    // What the worker that hangs has read is out of date when it goes on.
    stack.upstream.edition += 1;
    await using next = await stack.startWorker();
    if (AFTER_COMMIT.includes(step)) await askAgain();
    const took = await takenOver(step, next);
    process.stdout.write(`hangs ${step}: the next one had taken over after ${took.toFixed(1)} s\n`);
    const [before, runs] = [await stored(), await runsOf(stack)];
    hung.child.kill('SIGCONT');
    hung.child.kill('SIGTERM');
    // It ends once all that it was about to do is done, or refused.
    await hung.exited;
    expect(await stored()).toEqual(before);
    await untilSound(stack, next);
    expect(await stack.served()).toEqual([stack.upstream.edition]);
    const after = await runsOf(stack);
    // A job that it had taken and not begun is begun late, finds the source as it is stored, and changes nothing.
    expect(after.slice(runs.length).filter(({ outcome }) => outcome !== 'unchanged')).toEqual([]);
    const told = after.slice(0, runs.length).map(({ outcome }) => outcome);
    expect(told.slice(0, -2)).toEqual(runs.slice(0, -2).map(({ outcome }) => outcome));
    expect(told.at(-1)).toMatch(/changed/);
    if (RUNNING.has(step)) expect(told.at(-2)).toMatch(/^(superseded|interrupted)$/);
  } finally {
    hung.child.kill('SIGCONT');
  }
});

/** Seconds until what the upstream says now is served, and nothing is left to be done. */
async function takenOver(step: string, next: Program): Promise<number> {
  const began = performance.now();
  const wanted = { served: [stack.upstream.edition], jobs: 0, dirty: [] };
  let found: unknown;
  await until(
    async () => {
      const served = await stack.served();
      const jobs = await stack.queue.getJobCountByTypes('active', 'waiting', 'delayed');
      found = { served, jobs, dirty: await dirtyDocuments(stack.store.db, 1) };
      return isDeepStrictEqual(found, wanted);
    },
    { timeoutMs: 90_000, everyMs: 200, what: `a worker that takes over from one that hangs ${step}` },
  ).catch(async (error: unknown) => {
    const runs = (await runsOf(stack)).slice(-4);
    const told = JSON.stringify({ found, wanted, runs });
    throw new Error(`${told}\n${next.output().slice(-2000)}`, { cause: error });
  });
  return (performance.now() - began) / 1000;
}

/** A slot that is done with is not run again: an operator wants the source to be read once more. */
async function askAgain(): Promise<void> {
  await stack.queue.add('sync', {
    sourceId: SOURCE,
    slot: new Date().toISOString(),
    isAdditional: true,
    askedBy: 'test',
  });
}
