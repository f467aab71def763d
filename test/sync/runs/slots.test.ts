import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { ClientDatabase, Sql } from '../../../src/db/connection/connect.ts';
import { finishRun, registerSource } from '../../../src/sync/runs/run.ts';
import {
  type Attempt,
  attemptEnqueued,
  attemptsToEnqueue,
  beginAttempt,
  claimSlot,
  endAttempt,
  openAttempt,
  pruneSlots,
  requestAttempt,
  retryAttempt,
  settledSince,
} from '../../../src/sync/runs/slots.ts';
import { openScene, type Scene } from '../scene.ts';

let scene: Scene;
let db: ClientDatabase;
let sql: Sql;
beforeAll(async () => {
  scene = await openScene();
  ({ db, sql } = scene.store);
  return () => scene[Symbol.asyncDispose]();
});
beforeEach(() => scene.reset());

const COUNTS = { seen: 5, added: 1, changed: 2, retired: 3, rejected: 4, withdrawn: 5 };

describe('a slot', () => {
  const slot = (time: string, schedule = 's', attempt = 0): Attempt => ({
    schedule,
    slot: `2026-03-01T${time}:00Z`,
    attempt,
  });
  const begin = async (attempt: Attempt) => (await beginAttempt(db, attempt)) ?? expect.unreachable();
  const isOpen = async (attempt: Attempt) => (await openAttempt(db, attempt)) !== undefined;
  const ago = (seconds: number) => new Date(Date.now() - seconds * 1000);
  const claim = async (time: string, schedule = 's', ago = '1 hour') => {
    await claimSlot(db, slot(time, schedule));
    await sql`
      update schedule_slots set claimed_at = now() - ${ago}::interval
      where schedule = ${schedule} and slot = ${slot(time).slot}`;
  };

  it('has one claim among many concurrent ones', async () => {
    const claims = await Promise.all(Array.from({ length: 20 }, () => claimSlot(db, slot('10:00'))));
    expect(claims.filter(Boolean)).toHaveLength(1);
    expect(await claimSlot(db, slot('10:00'))).toBe(false);
    expect(await claimSlot(db, { schedule: 's', slot: '2026-03-01T12:00:00+02:00' })).toBe(false);
    expect(await claimSlot(db, slot('10:01'))).toBe(true);
    expect(await claimSlot(db, slot('10:00', 'other'))).toBe(true);
  });

  it('that never reached the queue is found again until it does', async () => {
    await claim('10:00');
    expect(await attemptsToEnqueue(db, 60_000)).toEqual([slot('10:00')]);
    expect(await attemptsToEnqueue(db, 60_000)).toEqual([slot('10:00')]);
    await attemptEnqueued(db, slot('10:00'));
    expect(await attemptsToEnqueue(db, 60_000)).toEqual([]);
  });

  it('that is overdue is found again although it reached the queue, until it is finished', async () => {
    await claim('10:00');
    await attemptEnqueued(db, slot('10:00'));
    await sql`update schedule_slots set enqueued_at = now() - interval '50 seconds'`;
    expect(await attemptsToEnqueue(db, 60_000)).toEqual([]);
    await sql`update schedule_slots set enqueued_at = now() - interval '70 seconds'`;
    expect(await attemptsToEnqueue(db, 60_000)).toEqual([slot('10:00')]);
    expect(await attemptsToEnqueue(db, 60_000)).toEqual([slot('10:00')]);
    const begun = await begin(slot('10:00'));
    expect(await attemptsToEnqueue(db, 60_000)).toEqual([slot('10:00')]);
    await endAttempt(db, begun);
    expect(await attemptsToEnqueue(db, 60_000)).toEqual([]);
    expect(await isOpen(slot('10:00'))).toBe(false);
  });

  it('that is overdue is finished if a later one is claimed', async () => {
    await claim('10:00');
    await attemptEnqueued(db, slot('10:00'));
    await sql`update schedule_slots set enqueued_at = now() - interval '1 hour'`;
    expect(await isOpen(slot('10:00'))).toBe(true);
    await claim('10:10');
    await attemptEnqueued(db, slot('10:10'));
    expect(await isOpen(slot('10:00'))).toBe(false);
    expect(await attemptsToEnqueue(db, 60_000)).toEqual([]);
    const open = await sql`select slot from schedule_slots where due_at is not null`;
    expect(open).toHaveLength(1);
  });

  it('waits as long as an upstream requested of an earlier one', async () => {
    await claim('10:00');
    const due = new Date(Date.now() + 7_200_000);
    await retryAttempt(db, await begin(slot('10:00')), { due, failures: 1 });
    expect([await claimSlot(db, slot('11:00')), await claimSlot(db, slot('11:00', 't'))]).toEqual([
      false,
      true,
    ]);
    expect(await isOpen(slot('11:00'))).toBe(false);
    expect(await attemptsToEnqueue(db, 0)).toEqual([slot('11:00', 't')]);
    const [waiting] = await sql<{ due: Date }[]>`
      select due_at as due from schedule_slots where schedule = 's' order by slot desc limit 1`;
    expect(new Date(waiting?.due ?? 0)).toEqual(due);
  });

  it('has its next attempt under another number, when it is due', async () => {
    await claim('10:00');
    await attemptEnqueued(db, slot('10:00'));
    await retryAttempt(db, await begin(slot('10:00')), { due: new Date(Date.now() + 60_000), failures: 1 });
    expect(await attemptsToEnqueue(db, 0)).toEqual([]);
    await sql`update schedule_slots set due_at = ${ago(1)}`;
    expect(await attemptsToEnqueue(db, 60_000)).toEqual([slot('10:00', 's', 1)]);
    expect([await isOpen(slot('10:00')), await isOpen(slot('10:00', 's', 1))]).toEqual([false, true]);
    expect(await openAttempt(db, slot('10:00', 's', 1))).toMatchObject({ failures: 1, begunAt: null });
  });

  it('that two workers began is ended by the second one only', async () => {
    await claim('10:00');
    const hung = await begin(slot('10:00'));
    const second = await begin(slot('10:00'));
    await endAttempt(db, hung);
    await retryAttempt(db, hung, { due: ago(0), failures: 1 });
    expect(await isOpen(slot('10:00'))).toBe(true);
    await endAttempt(db, second);
    await retryAttempt(db, hung, { due: ago(0), failures: 1 });
    expect(await attemptsToEnqueue(db, 0)).toEqual([]);
  });

  it('that is finished, or waits for a retry, is due at once on request', async () => {
    await claim('10:00');
    await endAttempt(db, await begin(slot('10:00')));
    await requestAttempt(db, slot('09:00'), { cause: 'hand', askedBy: 'ada' });
    expect(await attemptsToEnqueue(db, 60_000)).toEqual([slot('10:00', 's', 1)]);
    const begun = await begin(slot('10:00', 's', 1));
    expect(begun).toMatchObject({ cause: 'hand', askedBy: 'ada' });
    await retryAttempt(db, begun, { due: new Date(Date.now() + 60_000), failures: 1 });
    await requestAttempt(db, slot('10:00'), { cause: 'follow' });
    expect(await attemptsToEnqueue(db, 60_000)).toEqual([]);
    await requestAttempt(db, slot('10:00'), { cause: 'hand', askedBy: 'bob' });
    expect(await attemptsToEnqueue(db, 60_000)).toEqual([slot('10:00', 's', 3)]);
    expect(await openAttempt(db, slot('10:00', 's', 3))).toMatchObject({ askedBy: 'bob', failures: 1 });
  });

  it('that is requested twice before a worker begins it has one attempt', async () => {
    await requestAttempt(db, slot('10:00'), { cause: 'follow' });
    await requestAttempt(db, slot('10:00'), { cause: 'hand', askedBy: 'ada' });
    await requestAttempt(db, slot('10:00'), { cause: 'follow' });
    expect(await openAttempt(db, slot('10:00'))).toMatchObject({ cause: 'hand', askedBy: 'ada' });
    expect(await attemptsToEnqueue(db, -1000)).toEqual([slot('10:00')]);
  });

  it('that is requested during a run has its attempt after the run, whose end does not finish it', async () => {
    await registerSource(db, { id: 's', kind: 'catalogue', adapter: 'x' });
    await claim('10:00');
    const begun = await begin(slot('10:00'));
    const run = await scene.liveRuns.begin('s', slot('10:00').slot, { origin: { cause: 'slot' } });
    await requestAttempt(db, slot('10:00'), { cause: 'hand', askedBy: 'ada' });
    expect(await attemptsToEnqueue(db, 60_000)).toEqual([]);
    await finishRun(db, run.run, 'unchanged', COUNTS, new Date().toISOString());
    await run[Symbol.asyncDispose]();
    await endAttempt(db, begun);
    expect(await attemptsToEnqueue(db, 60_000)).toEqual([slot('10:00', 's', 1)]);
  });

  it('is settled by a run that read the source since a worker began it, and by no earlier, failed or other run', async () => {
    await registerSource(db, { id: 's', kind: 'catalogue', adapter: 'x' });
    const end = async (outcome: 'unchanged' | 'failed', cause: 'slot' | 'decision') => {
      const live = await scene.liveRuns.begin('s', undefined, { origin: { cause } });
      await finishRun(db, live.run, outcome, COUNTS, new Date().toISOString());
      await live[Symbol.asyncDispose]();
    };
    await end('unchanged', 'slot');
    await claim('10:00');
    const open = await openAttempt(db, slot('10:00'));
    expect(await settledSince(db, open ?? expect.unreachable())).toBeUndefined();
    const begun = await begin(slot('10:00'));
    await end('failed', 'slot');
    await end('unchanged', 'decision');
    expect(await settledSince(db, begun)).toBeUndefined();
    await end('unchanged', 'slot');
    expect(await settledSince(db, begun)).toBe('unchanged');
  });

  it('with a recent claim is not found again', async () => {
    await claim('10:00', 's', '59 seconds');
    await claim('10:00', 't', '61 seconds');
    expect(await attemptsToEnqueue(db, 60_000)).toEqual([slot('10:00', 't')]);
    expect(await attemptsToEnqueue(db, 0)).toEqual([slot('10:00'), slot('10:00', 't')]);
  });

  it('with a recent claim does not delay its later attempts and its requests', async () => {
    await claim('10:00', 's', '0 seconds');
    await requestAttempt(db, slot('10:00', 'r'), { cause: 'hand', askedBy: 'ada' });
    expect(await attemptsToEnqueue(db, 60_000)).toEqual([slot('10:00', 'r')]);
    await retryAttempt(db, await begin(slot('10:00')), { due: ago(1), failures: 1 });
    expect(await attemptsToEnqueue(db, 60_000)).toEqual([slot('10:00', 'r'), slot('10:00', 's', 1)]);
  });

  it('is finished if a later one of its schedule is claimed', async () => {
    for (const time of ['10:00', '10:10', '10:20']) await claim(time);
    await claim('10:00', 't');
    expect(await attemptsToEnqueue(db, 60_000)).toEqual([slot('10:20'), slot('10:00', 't')]);
    await attemptEnqueued(db, slot('10:20'));
    await attemptEnqueued(db, slot('10:00', 't'));
    expect(await attemptsToEnqueue(db, 60_000)).toEqual([]);
  });

  it('is finished also if the later one is in the queue, or about to be', async () => {
    await claim('10:00');
    await claim('10:10');
    await attemptEnqueued(db, slot('10:10'));
    await claim('11:00', 't');
    await claim('11:10', 't', '0 seconds');
    expect(await attemptsToEnqueue(db, 60_000)).toEqual([]);
    expect(await attemptsToEnqueue(db, 0)).toEqual([slot('11:10', 't')]);
  });

  it('is deleted after a week, except for the last one of its schedule', async () => {
    for (const time of ['10:00', '10:10']) await claim(time, 's', '8 days');
    for (const time of ['10:00', '10:10']) await claim(time, 't', '6 days');
    await pruneSlots(db);
    expect(
      await sql`select schedule, to_char(slot at time zone 'UTC', 'HH24:MI') as at from schedule_slots order by 1, 2`,
    ).toEqual([
      { schedule: 's', at: '10:10' },
      { schedule: 't', at: '10:00' },
      { schedule: 't', at: '10:10' },
    ]);
  });
});
