import { pino } from 'pino';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { openStore, type Store } from '../../src/db/connection/connect.ts';
import { openRedis, redisReady } from '../../src/redis/redis.ts';
import { type Attempt, pruneSlots } from '../../src/sync/runs/slots.ts';
import { jobId, openQueues, QUEUE_PREFIX } from '../../workers/queues.ts';
import { type Schedule, Scheduler } from '../../workers/schedule.ts';
import { createDatabase, type TestDatabase } from '../support/postgres.ts';
import { startTestRedis } from '../support/redis.ts';
import { until } from '../support/until.ts';

const silent = pino({ level: 'silent' });
const HOURLY: Schedule = { name: 'hetzner', cron: '17 * * * *' };
const DAILY: Schedule = { name: 'linode', cron: '0 3 * * *' };

let db: TestDatabase;
let store: Store;
/** PostgreSQL's clock, and that of the workers by default. */
let now: Date;
let own: Date | undefined;

beforeAll(async () => {
  db = await createDatabase();
  store = openStore({ url: db.url, role: 'worker' });
});
afterAll(async () => {
  await store[Symbol.asyncDispose]();
  await db[Symbol.asyncDispose]();
});
beforeEach(async () => {
  now = new Date('2026-03-01T10:20:00Z');
  own = undefined;
  await store.sql`delete from schedule_slots`;
});

interface Worker {
  readonly scheduler: Scheduler;
  readonly enqueued: Attempt[];
  isAway: boolean;
}

/** The scheduler of a worker; its queue can be unavailable. */
function worker(
  schedules: readonly Schedule[] = [HOURLY, DAILY],
  db = store.db,
  checkEveryMs = 5000,
): Worker {
  const self: Worker = {
    enqueued: [],
    isAway: false,
    scheduler: new Scheduler({
      db,
      schedules,
      logger: silent,
      checkEveryMs,
      now: () => own ?? now,
      databaseNow: async () => now,
      enqueue: async (slot) => {
        if (self.isAway) throw new Error('the queue is away');
        self.enqueued.push(slot);
      },
    }),
  };
  return self;
}

const at = (schedule: Schedule, slot: string): Attempt => ({ schedule: schedule.name, slot, attempt: 0 });
/** Marks each slot as claimed a while ago. */
const letPass = () => store.sql`update schedule_slots set claimed_at = claimed_at - interval '1 minute'`;

describe('a slot', () => {
  it('is one run for any number of workers', async () => {
    const stores = Array.from({ length: 4 }, () =>
      openStore({ url: db.url, role: 'worker', connections: 2 }),
    );
    const workers = stores.flatMap(({ db }) => [worker(undefined, db), worker(undefined, db)]);
    const all = () =>
      workers.flatMap(({ enqueued }) => enqueued).sort((a, b) => a.slot.localeCompare(b.slot));
    await Promise.all(workers.flatMap(({ scheduler }) => [scheduler.claimDue(), scheduler.catchUp()]));
    const first = [at(DAILY, '2026-03-01T03:00:00Z'), at(HOURLY, '2026-03-01T10:17:00Z')];
    expect(all()).toEqual(first);
    now = new Date('2026-03-01T11:17:00Z');
    await Promise.all(workers.map(({ scheduler }) => scheduler.claimDue()));
    expect(all()).toEqual([...first, at(HOURLY, '2026-03-01T11:17:00Z')]);
    await Promise.all(stores.map((opened) => opened[Symbol.asyncDispose]()));
  });

  it('that passed while no worker ran is claimed at the start: only the latest of each schedule', async () => {
    const before = worker();
    await before.scheduler.claimDue();
    now = new Date('2026-03-04T10:20:00Z');
    const after = worker();
    await after.scheduler.catchUp();
    expect(after.enqueued).toEqual([at(HOURLY, '2026-03-04T10:17:00Z'), at(DAILY, '2026-03-04T03:00:00Z')]);
  });

  it('is claimed in its exact second', async () => {
    now = new Date('2026-03-01T10:16:59.999Z');
    const { scheduler, enqueued } = worker([HOURLY]);
    await scheduler.claimDue();
    now = new Date('2026-03-01T10:17:00.000Z');
    await scheduler.claimDue();
    expect(enqueued.map(({ slot }) => slot)).toEqual(['2026-03-01T09:17:00Z', '2026-03-01T10:17:00Z']);
  });

  it('whose worker died before it enqueued the job is enqueued once by another', async () => {
    const dying = worker([HOURLY]);
    dying.isAway = true;
    await dying.scheduler.claimDue();
    const other = worker([HOURLY]);
    await other.scheduler.catchUp();
    // The first worker may still enqueue it.
    expect(other.enqueued).toEqual([]);
    await letPass();
    await other.scheduler.catchUp();
    await other.scheduler.catchUp();
    expect(other.enqueued).toEqual([at(HOURLY, '2026-03-01T10:17:00Z')]);
  });

  it('is not enqueued after a later one', async () => {
    const { scheduler, enqueued } = worker([HOURLY]);
    const away = worker([HOURLY]);
    away.isAway = true;
    await away.scheduler.claimDue();
    await letPass();
    now = new Date('2026-03-01T11:20:00Z');
    await scheduler.catchUp();
    await letPass();
    await scheduler.catchUp();
    expect(enqueued).toEqual([at(HOURLY, '2026-03-01T11:17:00Z')]);
  });

  it('of a source that only another worker has configured stays for that worker', async () => {
    const elsewhere = worker([DAILY]);
    elsewhere.isAway = true;
    await elsewhere.scheduler.claimDue();
    await letPass();
    const here = worker([HOURLY]);
    await here.scheduler.catchUp();
    expect(here.enqueued.map(({ schedule }) => schedule)).toEqual(['hetzner']);
    elsewhere.isAway = false;
    await elsewhere.scheduler.catchUp();
    expect(elsewhere.enqueued.map(({ schedule }) => schedule)).toEqual(['linode']);
  });

  it('is deleted after a week, except the last of its schedule', async () => {
    const { scheduler } = worker();
    await scheduler.claimDue();
    now = new Date('2026-03-01T11:20:00Z');
    await scheduler.claimDue();
    await store.sql`update schedule_slots set claimed_at = now() - interval '8 days'`;
    await pruneSlots(store.db);
    const left = await store.sql<
      { schedule: string }[]
    >`select schedule from schedule_slots order by schedule`;
    expect(left.map(({ schedule }) => schedule)).toEqual(['hetzner', 'linode']);
  });
});

describe('a wrong clock', () => {
  const slots = ({ enqueued }: Worker) => enqueued.map(({ slot }) => slot);

  it.each([
    ['a day ahead', '2026-03-02T10:20:00Z'],
    ['a year ahead', '2027-03-01T10:20:00Z'],
    ['a day behind', '2026-02-28T10:20:00Z'],
    ['at the beginning of time', '1970-01-01T00:00:30Z'],
  ])('%s claims the slots that are due by PostgreSQL, and no other worker’s', async (_, wrong) => {
    const astray = worker([HOURLY]);
    own = new Date(wrong);
    await astray.scheduler.catchUp();
    expect(slots(astray)).toEqual(['2026-03-01T10:17:00Z']);
    now = new Date('2026-03-01T11:17:30Z');
    await astray.scheduler.catchUp();
    own = undefined;
    const right = worker([HOURLY]);
    now = new Date('2026-03-01T12:17:30Z');
    await right.scheduler.catchUp();
    await astray.scheduler.catchUp();
    expect([...slots(astray), ...slots(right)]).toEqual([
      '2026-03-01T10:17:00Z',
      '2026-03-01T11:17:00Z',
      '2026-03-01T12:17:00Z',
    ]);
  });

  it('by less than a minute is used: slots are claimed to the second', async () => {
    own = new Date('2026-03-01T11:17:00Z');
    now = new Date('2026-03-01T11:16:30Z');
    const early = worker([HOURLY]);
    await early.scheduler.claimDue();
    expect(slots(early)).toEqual(['2026-03-01T11:17:00Z']);
  });

  it('set back while the scheduler runs does not stop its checks', async () => {
    vi.useFakeTimers({ toFake: ['Date', 'setInterval', 'clearInterval'], now });
    try {
      let looked = 0;
      const scheduler = new Scheduler({
        db: store.db,
        schedules: [],
        logger: silent,
        databaseNow: async () => {
          looked += 1;
          return now;
        },
        enqueue: async () => {},
      });
      scheduler.start();
      vi.advanceTimersByTime(60_000);
      expect(looked).toBe(2);
      vi.setSystemTime(Date.now() - 86_400_000);
      vi.advanceTimersByTime(180_000);
      expect(looked).toBe(5);
      await scheduler[Symbol.asyncDispose]();
      vi.advanceTimersByTime(180_000);
      expect(looked).toBe(5);
    } finally {
      vi.useRealTimers();
    }
  });
});

describe('a started scheduler', () => {
  it('claims due slots at once, and leaves nothing open when it is closed', async () => {
    const { scheduler, enqueued } = worker();
    scheduler.start();
    await until(() => enqueued.length === 2);
    await scheduler[Symbol.asyncDispose]();
    const [row] = await store.sql<{ open: number }[]>`
      select count(*)::integer as open from schedule_slots where enqueued_at is null`;
    expect(row?.open).toBe(0);
  });

  it('enqueues a slot whose claimer just died, without a wait for the next minute', async () => {
    const dying = worker([HOURLY]);
    dying.isAway = true;
    await dying.scheduler.claimDue();
    // One connection runs statements in order: the check at the start is over when the second one is.
    await using single = openStore({ url: db.url, role: 'worker', connections: 1 });
    const next = worker([HOURLY], single.db, 20);
    next.scheduler.start();
    await next.scheduler.catchUp();
    expect(next.enqueued).toEqual([]);
    await letPass();
    await until(() => next.enqueued.length > 0);
    await next.scheduler[Symbol.asyncDispose]();
    expect(next.enqueued).toEqual([at(HOURLY, '2026-03-01T10:17:00Z')]);
  });

  it('continues after a failure of Postgres', async () => {
    const broken = openStore({ url: `${db.url}_gone`, role: 'worker', connections: 1 });
    const failing = worker(undefined, broken.db);
    failing.scheduler.start();
    await failing.scheduler[Symbol.asyncDispose]();
    await broken[Symbol.asyncDispose]();
    expect(failing.enqueued).toEqual([]);
    const good = worker();
    await good.scheduler.catchUp();
    expect(good.enqueued).toHaveLength(2);
  });
});

describe('with a real queue', () => {
  it('enqueues a slot later, once, if it was claimed while Redis was away; a flushed Redis loses no schedule', async () => {
    await using redis = await startTestRedis();
    const producer = openRedis(redis.url, 'producer', () => {});
    await redisReady(producer, 5000);
    const { sync, all } = openQueues(producer, QUEUE_PREFIX, silent);
    await Promise.all(all.map((queue) => queue.waitUntilReady()));
    const scheduler = new Scheduler({
      db: store.db,
      schedules: [HOURLY],
      logger: silent,
      now: () => now,
      databaseNow: async () => now,
      enqueue: async (attempt) => {
        const { schedule: sourceId, slot } = attempt;
        await sync.add('sync', { ...attempt, sourceId, slot }, { jobId: jobId(attempt, 'lineage') });
      },
    });
    const waiting = async () => (await sync.getWaiting()).map(({ data }) => data.slot).sort();
    await redis.kill();
    const start = performance.now();
    await scheduler.claimDue();
    expect(performance.now() - start).toBeLessThan(3000);
    await redis.restart();
    await until(() => producer.status === 'ready');
    await letPass();
    for (let i = 0; i < 3; i++) await scheduler.catchUp();
    expect(await waiting()).toEqual(['2026-03-01T10:17:00Z']);

    await producer.flushall();
    now = new Date('2026-03-01T11:17:30Z');
    await scheduler.claimDue();
    expect(await waiting()).toEqual(['2026-03-01T11:17:00Z']);
    // As after a crash between adding the job and recording it: both have the same job id.
    await store.sql`update schedule_slots set enqueued_at = null`;
    await letPass();
    await scheduler.catchUp();
    expect(await waiting()).toEqual(['2026-03-01T11:17:00Z']);
    await Promise.all(all.map((queue) => queue.close()));
    producer.disconnect();
  });
});
