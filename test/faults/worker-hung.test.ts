/**
 * A worker that hangs for longer than its locks and its database connection last. Another worker takes over. Then the first
 * one continues its work.
 */
import { readFile } from 'node:fs/promises';
import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { dirtyDocuments } from '../../src/db/versions.ts';
import { requestAttempt } from '../../src/sync/runs/slots.ts';
import type { Program } from '../support/program.ts';
import { until } from '../support/until.ts';
import { few } from './support/steps.ts';
import { openWorkerStack, runsOf, SOURCE, untilSound, type WorkerStack } from './support/worker-stack.ts';

const OFFERS = 2500;
/** Steps up to the commit: another worker does all of the run again. */
const BEFORE_COMMIT = [
  'before: job added',
  'before: slot noted as enqueued',
  'before: rows copied',
  'before: fence checked',
  'after: fence checked',
  'as "sync commit" begins',
];
/** Steps after the commit. They are late when the worker continues. */
const AFTER_COMMIT = [
  'before: slot done with',
  'before: region sent to the cache',
  'before: documents marked as published',
  'before: ages sent to the cache',
  'before: job finished',
];
/** Steps whose run is recorded before the hang, and stores nothing. Its connection may or may not have ended by then. */
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

/** Returns all data that a late write could change. */
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
    // The data that the hung worker has read is out of date when it continues.
    stack.upstream.edition += 1;
    await using next = await stack.startWorker();
    if (AFTER_COMMIT.includes(step)) await requestRun();
    const took = await takenOver(step, next);
    process.stdout.write(`hangs ${step}: the next one had taken over after ${took.toFixed(1)} s\n`);
    const [before, runs] = [await stored(), await runsOf(stack)];
    hung.child.kill('SIGCONT');
    hung.child.kill('SIGTERM');
    // It ends after its remaining work is done or rejected.
    await hung.exited;
    expect(await stored()).toEqual(before);
    await untilSound(stack, next);
    expect(await stack.served()).toEqual([stack.upstream.edition]);
    const after = await runsOf(stack);
    // A job that it took and did not begin runs late, finds no difference, and changes nothing.
    expect(after.slice(runs.length).filter(({ outcome }) => outcome !== 'unchanged')).toEqual([]);
    const outcomes = after.slice(0, runs.length).map(({ outcome }) => outcome);
    expect(outcomes.slice(0, -2)).toEqual(runs.slice(0, -2).map(({ outcome }) => outcome));
    expect(outcomes.at(-1)).toMatch(/changed/);
    if (RUNNING.has(step)) expect(outcomes.at(-2)).toMatch(/^(superseded|interrupted)$/);
  } finally {
    hung.child.kill('SIGCONT');
  }
});

/** Returns the seconds until the current data of the upstream is served, and no work is left. */
async function takenOver(step: string, next: Program): Promise<number> {
  const began = performance.now();
  const wanted = { served: [stack.upstream.edition], jobs: 0, dirty: [] };
  let found: unknown;
  await until(
    async () => {
      const served = await stack.served();
      const jobs = await stack.openWork();
      found = { served, jobs, dirty: await dirtyDocuments(stack.store.db, 1) };
      return isDeepStrictEqual(found, wanted);
    },
    { timeoutMs: 90_000, everyMs: 200, what: `a worker that takes over from one that hangs ${step}` },
  ).catch(async (error: unknown) => {
    const runs = (await runsOf(stack)).slice(-4);
    const summary = JSON.stringify({ found, wanted, runs });
    throw new Error(`${summary}\n${next.output().slice(-2000)}`, { cause: error });
  });
  return (performance.now() - began) / 1000;
}

/** Requests another run as an operator does: a finished slot does not run again. */
async function requestRun(): Promise<void> {
  await requestAttempt(
    stack.store.db,
    { schedule: SOURCE, slot: new Date().toISOString() },
    { cause: 'hand' },
  );
}
