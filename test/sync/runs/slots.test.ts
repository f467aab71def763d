import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { ClientDatabase, Sql } from '../../../src/db/connection/connect.ts';
import { providerNamed, seedProviders } from '../../../src/db/providers.ts';
import { claimContent, exampleRegion, sourceStatus } from '../../../src/db/sources.ts';
import { anyNeverRan, beginRun, finishRun, registerSource } from '../../../src/sync/runs/run.ts';
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
} from '../../../src/sync/runs/slots.ts';
import { cluster } from '../clusters/rows.ts';
import { offer, offers, openScene, region, rejected, type Scene } from '../scene.ts';

let scene: Scene;
let db: ClientDatabase;
let sql: Sql;
beforeAll(async () => {
  scene = await openScene();
  ({ db, sql } = scene.store);
  return () => scene[Symbol.asyncDispose]();
});
beforeEach(() => scene.reset());

const NOW = '2026-03-01T10:20:30.456Z';
const COUNTS = { seen: 5, added: 1, changed: 2, retired: 3, rejected: 4, withdrawn: 5 };

describe('a run', () => {
  it('of an unregistered source does not begin', async () => {
    await expect(beginRun(db, 'unknown', undefined)).rejects.toThrow('source unknown is not registered');
    expect(await sql`select from sync_runs`).toHaveLength(0);
  });

  it('has a unique fence, however many begin at once', async () => {
    await registerSource(db, { id: 's', kind: 'catalogue', adapter: 'x' });
    const runs = await Promise.all(Array.from({ length: 12 }, () => beginRun(db, 's', undefined)));
    const fences = runs.map(({ fence }) => fence).sort((a, b) => a - b);
    expect(fences).toEqual(Array.from({ length: 12 }, (_, index) => index + 1));
    expect(new Set(runs.map(({ id }) => id)).size).toBe(12);
  });

  it('whose process died is interrupted when the next run of its source begins, not of another one', async () => {
    for (const id of ['s', 't']) await registerSource(db, { id, kind: 'catalogue', adapter: 'x' });
    await beginRun(db, 's', undefined);
    await beginRun(db, 't', undefined);
    await beginRun(db, 's', '2026-03-01T10:20:00Z');
    expect(
      await sql`
        select source_id, outcome, finished_at is null as open, to_char(slot at time zone 'UTC', 'HH24:MI') as slot
        from sync_runs order by id`,
    ).toEqual([
      { source_id: 's', outcome: 'interrupted', open: false, slot: null },
      { source_id: 't', outcome: 'running', open: true, slot: null },
      { source_id: 's', outcome: 'running', open: true, slot: '10:20' },
    ]);
  });

  it.each([
    ['changed', true],
    ['unchanged', true],
    ['held', false],
    ['failed', false],
    ['superseded', false],
    ['cancelled', false],
  ] as const)('that ends as %s verifies its source: %s', async (outcome, verifies) => {
    await registerSource(db, { id: 's', kind: 'catalogue', adapter: 'x' });
    const run = await beginRun(db, 's', undefined);
    await finishRun(db, run, outcome, COUNTS, NOW, 'said');
    expect(
      await sql`select outcome, seen, added, changed, retired, rejected, withdrawn, error from sync_runs`,
    ).toEqual([{ outcome, ...COUNTS, error: 'said' }]);
    expect(await sql`select verified_at = ${NOW} as now from sources`).toEqual([
      { now: verifies ? true : null },
    ]);
  });

  it('ends once', async () => {
    await registerSource(db, { id: 's', kind: 'clusters', adapter: 'x' });
    const run = await beginRun(db, 's', undefined);
    await finishRun(db, run, 'superseded', undefined, NOW);
    await finishRun(db, run, 'failed', COUNTS, NOW, 'late');
    expect(await sql`select outcome, seen, error from sync_runs`).toEqual([
      { outcome: 'superseded', seen: null, error: null },
    ]);
  });

  it('changes the list of providers if it is the first good one of a catalogue', async () => {
    const version = async () => Number((await sql`select providers_version as v from lineage`)[0]?.v);
    const finished = async (id: string, kind: 'catalogue' | 'clusters', outcome: 'unchanged' | 'failed') => {
      await registerSource(db, { id, kind, adapter: 'x' });
      await finishRun(db, await beginRun(db, id, undefined), outcome, COUNTS, NOW);
      return version();
    };
    expect(await finished('s', 'catalogue', 'failed')).toBe(1);
    expect(await finished('s', 'catalogue', 'unchanged')).toBe(2);
    expect(await finished('s', 'catalogue', 'unchanged')).toBe(2);
    expect(await finished('plane', 'clusters', 'unchanged')).toBe(2);
    expect(await finished('t', 'catalogue', 'unchanged')).toBe(3);
  });

  it('counts as awaited until each source has a finished run, good or bad', async () => {
    for (const id of ['s', 't']) await registerSource(db, { id, kind: 'catalogue', adapter: 'x' });
    const never = (...ids: string[]) => anyNeverRan(db, ids);
    expect([await never(), await never('s', 't'), await never('unknown')]).toEqual([false, true, true]);
    const run = await beginRun(db, 's', undefined);
    expect(await never('s')).toBe(true);
    await finishRun(db, run, 'failed', undefined, NOW);
    expect([await never('s'), await never('s', 't')]).toEqual([false, true]);
  });

  it('finds its source as last registered', async () => {
    await registerSource(db, { id: 's', kind: 'catalogue', adapter: 'x' });
    await beginRun(db, 's', undefined);
    const before = await scene.rows('sources');
    await registerSource(db, { id: 's', kind: 'catalogue', adapter: 'x' });
    expect(await scene.rows('sources')).toEqual(before);
    await registerSource(db, { id: 's', kind: 'catalogue', adapter: 'y' });
    expect(await sql`select adapter, fence from sources`).toEqual([{ adapter: 'y', fence: '1' }]);
  });
});

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

  it('with a recent claim is not found again', async () => {
    await claim('10:00', 's', '59 seconds');
    await claim('10:00', 't', '61 seconds');
    expect(await attemptsToEnqueue(db, 60_000)).toEqual([slot('10:00', 't')]);
    expect(await attemptsToEnqueue(db, 0)).toEqual([slot('10:00'), slot('10:00', 't')]);
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

describe('the status', () => {
  it('shows every registered source, also those that never ran', async () => {
    await registerSource(db, { id: 'b', kind: 'clusters', adapter: 'x' });
    await registerSource(db, { id: 'a', kind: 'catalogue', adapter: 'x' });
    const nothing = {
      lastRun: null,
      lastEnded: null,
      verifiedAt: null,
      registeredAt: expect.stringMatching(/^\d{4}-.*Z$/),
      retiredAt: null,
      disabled: null,
      paused: null,
      regions: [],
      known: 0,
      published: 0,
      quarantined: 0,
      held: 0,
      failedRuns: 0,
      failingSince: null,
      heldSince: null,
    };
    expect(await sourceStatus(sql)).toEqual([
      { id: 'a', kind: 'catalogue', counted: 'machines', ...nothing },
      { id: 'b', kind: 'clusters', counted: 'clusters', ...nothing },
    ]);
    expect(await exampleRegion(sql)).toBeUndefined();
  });

  it('counts known, published, quarantined and held rows, and shows the last run', async () => {
    await scene.organization('org');
    const items = [
      region('a'),
      region('b'),
      ...offers('a', 9),
      offer('b', 'x'),
      offer('a', 'y', { excluded: 'discontinued' }),
    ];
    await scene.catalogue([...items, rejected('p')]);
    const why = 'answers 500';
    const unread = ['b', 'c'].map((code) => ({ kind: 'unread', regionCode: code, reason: why }) as const);
    await scene.catalogue([...items, rejected('p'), ...unread], { limits: { rejectedShare: 1 } });
    await scene.clusters([cluster('one')]);
    await scene.catalogue([region('a'), offer('a', 'm1')]);
    const [catalogue, clusters] = await sourceStatus(sql);
    expect(catalogue).toMatchObject({
      id: 'acme',
      known: 11,
      published: 10,
      quarantined: 3,
      held: 1,
      verifiedAt: '2026-01-01T02:00:00Z',
      regions: [
        { code: 'a', verifiedAt: '2026-01-01T02:00:00Z', unreadSince: null, reason: null },
        { code: 'b', verifiedAt: '2026-01-01T01:00:00Z', unreadSince: expect.any(String), reason: why },
        { code: 'c', verifiedAt: null, unreadSince: expect.any(String), reason: why },
      ],
      lastRun: {
        outcome: 'held',
        seen: 1,
        error: '10 of 11 known rows are not reported any more (91 %, limit 20 %)',
      },
    });
    expect(clusters).toMatchObject({
      id: 'plane',
      kind: 'clusters',
      known: 1,
      published: 1,
      held: 0,
      quarantined: 0,
    });
    const [{ id } = expect.unreachable()] = await sql`select id from regions where code = 'a'`;
    expect(await exampleRegion(sql)).toEqual({ id, providerId: 77 });
  });
});

describe('providers', () => {
  const known = [
    { id: 2, name: 'AWS' },
    { id: 5, name: 'Hetzner' },
  ];

  it('of adapters have fixed ids from the start, and are not listed before their catalogue', async () => {
    await Promise.all([seedProviders(db, known), seedProviders(db, known.toReversed())]);
    expect(await sql`select id, name, listed from providers order by id`).toEqual(
      known.map((provider) => ({ ...provider, listed: false })),
    );
    const before = await scene.rows('providers', 'organizations', 'lineage');
    await seedProviders(db, known);
    expect(await scene.rows('providers', 'organizations', 'lineage')).toEqual(before);
    await scene.catalogue([region('a'), offer('a', 'x')], { provider: { id: 5, name: 'Hetzner' } });
    expect(await sql`select id, listed from providers order by id`).toEqual([
      { id: 2, listed: false },
      { id: 5, listed: true },
    ]);
  });

  it('that clusters named before move to the fixed id, with clusters and regions', async () => {
    await scene.organization('org');
    await scene.organization('other');
    await scene.clusters([
      cluster('one', { provider: 'hetzner' }),
      cluster('two', { provider: 'Elsewhere', organization: 'other' }),
    ]);
    expect(await sql`select id, name from providers order by name collate "C"`).toEqual([
      { id: expect.any(Number), name: 'Elsewhere' },
      { id: expect.any(Number), name: 'hetzner' },
    ]);
    const versions = () => sql`select clusters_version as version from organizations order by id`;
    const [one, other] = await versions();
    await seedProviders(db, known);
    expect(
      await sql`
      select p.id, p.name from clusters c join regions r on r.id = c.region_id join providers p on p.id = r.provider_id
      where c.source_key = 'one'`,
    ).toEqual([{ id: 5, name: 'Hetzner' }]);
    expect(await sql`select name from providers order by name`).toEqual(
      ['AWS', 'Elsewhere', 'Hetzner'].map((name) => ({ name })),
    );
    expect(await versions()).toEqual([{ version: String(Number(one?.version) + 1) }, other]);
    // The clusters do not change, and a catalogue can be added.
    expect(
      await scene.clusters([
        cluster('one', { provider: 'hetzner' }),
        cluster('two', { provider: 'Elsewhere', organization: 'other' }),
      ]),
    ).toMatchObject({ outcome: 'unchanged' });
    expect(
      await scene.catalogue([region('a'), offer('a', 'x')], { provider: { id: 5, name: 'Hetzner' } }),
    ).toMatchObject({ outcome: 'changed' });
  });

  it('are created once per name, in upper or lower case, also by concurrent calls', async () => {
    const made = await Promise.all(['Own', 'Own', 'Own', 'Own'].map((name) => providerNamed(db, name)));
    expect(new Set(made.map(({ id }) => id)).size).toBe(1);
    expect(await providerNamed(db, 'oWn')).toEqual(made[0]);
  });
});

describe('the content', () => {
  it('of a database depends on its first use; of two concurrent uses one decides', async () => {
    const claims = await Promise.allSettled([claimContent(db, 'live'), claimContent(db, 'sample')]);
    expect(claims.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    const [{ content } = expect.unreachable()] = await sql<
      { content: 'live' | 'sample' }[]
    >`select content from lineage`;
    await claimContent(db, content);
    await expect(claimContent(db, content === 'live' ? 'sample' : 'live')).rejects.toThrow(
      /^this database holds (the sample catalogue|live data) and .* must not mix .* DATABASE_URL$/,
    );
  });
});
