/** A source that crashes its worker, in separate processes. */
import { mkdtempDisposable, writeFile } from 'node:fs/promises';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { requestRun } from '../../src/app/actions/source.ts';
import { openStore } from '../../src/db/connection/connect.ts';
import { IS_LIVE } from '../../src/db/runs/status.ts';
import { sourceStatus } from '../../src/db/sources.ts';
import { evaluateAlerts } from '../../src/features/notifications/evaluate.ts';
import { DEFAULT_RULES } from '../../src/features/notifications/rules.ts';
import { freePort } from '../../src/processes/port.ts';
import { openRedis, redisReady } from '../../src/redis/redis.ts';
import { interruptedRuns } from '../../src/sync/runs/disabled.ts';
import { requestAttempt } from '../../src/sync/runs/slots.ts';
import { queuePrefix, SYNC_QUEUE } from '../../workers/queues.ts';
import { YEARLY } from '../support/day.ts';
import { createDatabase } from '../support/postgres.ts';
import { CLI, type Program, startProgram } from '../support/program.ts';
import { startTestRedis } from '../support/redis.ts';
import { until } from '../support/until.ts';

const RATES = `<gesmes:Envelope><Cube><Cube time='2026-11-20'><Cube currency='USD' rate='1.1'/></Cube></Cube></gesmes:Envelope>`;
const LIST = 'region_code,name,cpu,ram,ram_unit,price,per,currency\nr1,m1,1,2,GiB,0.01,hour,EUR\n';
const BLOCK_AT = new URL('./programs/block-at.ts', import.meta.url).href;
const CALM = { timeoutMs: 200_000, everyMs: 50 };

type Behaviour = 'answers' | 'hangs' | 'sends a bomb';

/** About 61 kB that decompress to a list of millions of empty objects. */
const BOMB = gzipSync(`[${'{},'.repeat(20_900_000)}{}]`, { level: 9 });

/** Sources that answer, hang or send a bomb, and workers that can be killed. */
async function openScene(sources: Record<string, Behaviour>) {
  await using opened = new AsyncDisposableStack();
  const folder = opened.use(await mkdtempDisposable(join(tmpdir(), 'fleetbook-set-aside-')));
  const [database, redis] = [opened.use(await createDatabase()), opened.use(await startTestRedis())];
  const store = opened.use(openStore({ url: database.url, role: 'worker', connections: 4 }));
  const producer = openRedis(redis.url, 'producer', () => {});
  opened.defer(() => producer.disconnect());
  await redisReady(producer, 5000);
  const behaviours = new Map(Object.entries(sources));
  const calls: string[] = [];
  const hanging = new Set<string>();
  const server = createServer((request, response) => {
    const id = (request.url ?? '').slice(1);
    calls.push(id);
    answer(id, response);
  });
  function answer(id: string, response: ServerResponse) {
    if (id === 'rates') return response.end(RATES);
    if (behaviours.get(id) === 'answers') return response.end(LIST);
    if (behaviours.get(id) === 'sends a bomb')
      return response.writeHead(200, { 'content-encoding': 'gzip', 'content-length': BOMB.length }).end(BOMB);
    hanging.add(id);
    return response.once('close', () => hanging.delete(id));
  }
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  opened.defer(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const catalogues = Object.keys(sources).map((id) => ({
    ...{ id, adapter: 'price-list', url: `${url}/${id}`, schedule: YEARLY },
    options: { provider: id },
  }));
  const file = join(folder.path, 'sources.json');
  await writeFile(file, JSON.stringify({ catalogues }));
  const runsUnderWay = async () => {
    const isUnderWay = store.sql.unsafe(IS_LIVE);
    return (await store.sql`select from sync_runs r where ${isUnderWay}`).length;
  };
  const closing = opened.move();
  return {
    store,
    calls,
    hanging,
    behaviours,
    start: async (nodeOptions = '', more: Record<string, string> = {}): Promise<Program> =>
      startProgram(CLI, ['work'], {
        env: {
          ...more,
          PATH: process.env.PATH,
          NODE_OPTIONS: nodeOptions,
          DATABASE_URL: database.url,
          REDIS_URL: redis.url,
          CATALOGUE_CURRENCY: 'EUR',
          EXCHANGE_RATES_URL: `${url}/rates`,
          EXCHANGE_RATES_SCHEDULE: YEARLY,
          FLEETBOOK_CONFIG: file,
          OPS_PORT: String(await freePort()),
        },
      }),
    /** Kills a worker as the system does. */
    async kill(worker: Program) {
      worker.child.kill('SIGKILL');
      await this.untilEnded(worker);
    },
    /** Waits for the end of a worker, and removes its jobs' locks, which would expire in seconds. */
    async untilEnded(worker: Program) {
      await worker.exited;
      // A run counts as interrupted once PostgreSQL detects its closed connection, which takes longer on a busy
      // machine.
      await until(async () => (await runsUnderWay()) === 0, CALM);
      const prefix = `${await queuePrefix(store.db)}:${SYNC_QUEUE}`;
      for (const id of await producer.lrange(`${prefix}:active`, 0, -1)) {
        await producer.del(`${prefix}:${id}:lock`);
        await producer.sadd(`${prefix}:stalled`, id);
      }
      await producer.del(`${prefix}:stalled-check`);
    },
    async stateOf(id: string) {
      return (await sourceStatus(store.db)).find((source) => source.id === id);
    },
    async aloneOf(id: string) {
      return (await interruptedRuns(store.db, id)).alone.length;
    },
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  };
}

/** Kills workers until `bad` was the only run of the given number of them. A run that was not alone does not count. */
async function killTwice(scene: Awaited<ReturnType<typeof openScene>>, between = async () => {}) {
  for (let deaths = 1, alone = 0; alone < 2; deaths++) {
    expect(deaths).toBeLessThan(10);
    await using worker = await scene.start();
    // The other source is done: the process ends with only one run.
    await until(async () => (await scene.stateOf('good'))?.lastRun?.outcome === 'changed', CALM);
    await until(() => scene.hanging.has('bad'), CALM);
    await scene.kill(worker);
    await until(() => !scene.hanging.has('bad'), CALM);
    const before = alone;
    alone = await scene.aloneOf('bad');
    if (before === 0 && alone === 1) await between();
  }
}

it('a source whose runs ended their process twice within an hour is paused for an hour with an alert, and then runs again', async () => {
  await using scene = await openScene({ bad: 'hangs', good: 'answers' });
  await killTwice(scene);
  const before = scene.calls.filter((id) => id === 'bad').length;
  await using worker = await scene.start();
  const paused = await until(async () => (await scene.stateOf('bad'))?.paused, CALM);
  expect(paused.reason).toMatch(
    /^its runs \d+ and \d+ ended the process of their worker within an hour; check/,
  );
  const minutes = (Date.parse(paused.until) - Date.now()) / 60_000;
  expect([minutes > 55, minutes <= 60.1]).toEqual([true, true]);
  expect((await scene.stateOf('bad'))?.disabled).toBeNull();
  const rules = { ...DEFAULT_RULES, failuresInRow: 99 };
  const watched = ['bad', 'good'].map((id) => ({ id, kind: 'catalogue' as const, maxAge: 1e9 }));
  const openAlerts = () =>
    scene.store.sql`select kind, subject, summary from alerts where resolved_at is null`;
  // The worker evaluates too, and may have opened it.
  await until(() => evaluateAlerts(scene.store.db, watched, rules, new Date()));
  expect(await openAlerts()).toMatchObject([
    { kind: 'source_paused', subject: 'bad', summary: expect.stringContaining('and then runs again') },
  ]);
  expect(scene.calls.filter((id) => id === 'bad')).toHaveLength(before);
  expect(worker.child.exitCode).toBeNull();

  // The hour is over: it runs again by itself, and the alert ends.
  scene.behaviours.set('bad', 'answers');
  await scene.store.sql`update sources set paused_until = now()`;
  await scene.store
    .sql`update sync_runs set finished_at = finished_at - interval '1 hour' where source_id = 'bad'`;
  await until(async () => (await scene.stateOf('bad'))?.lastRun?.outcome === 'changed', CALM);
  await evaluateAlerts(scene.store.db, watched, rules, new Date());
  expect(await openAlerts()).toEqual([]);
}, 300_000);

it('ends more than an hour apart pause no source, and a person who requests a run ends a pause', async () => {
  await using scene = await openScene({ bad: 'hangs', good: 'answers' });
  const { sql, db } = scene.store;
  await killTwice(scene);
  // As if an hour lay between the two ends.
  await sql`update sync_runs set finished_at = now() - interval '61 minutes' where id = (
    select min(id) from sync_runs where source_id = 'bad' and alone)`;
  const before = scene.calls.filter((id) => id === 'bad').length;
  const third = await scene.start();
  await until(() => scene.calls.filter((id) => id === 'bad').length > before, CALM);
  expect((await scene.stateOf('bad'))?.paused).toBeNull();
  await until(async () => (await scene.stateOf('bad'))?.lastRun?.outcome === 'running', CALM);
  await scene.kill(third);

  await using worker = await scene.start();
  await until(async () => (await scene.stateOf('bad'))?.paused, CALM);
  scene.behaviours.set('bad', 'answers');
  const ada = { by: 'ada', how: 'cli', address: undefined, reason: 'it is well' } as const;
  expect(await requestRun(db, { id: 'bad', schedule: YEARLY }, ada)).toMatchObject({ starts: 'now' });
  await until(async () => (await scene.stateOf('bad'))?.lastRun?.outcome === 'changed', CALM);
  expect((await scene.stateOf('bad'))?.paused).toBeNull();
  expect(worker.child.exitCode).toBeNull();
}, 300_000);

it('a worker whose event loop a run blocks is ended by its watchdog, which counts as an end by that source; the others go on', async () => {
  await using scene = await openScene({ bad: 'answers', good: 'answers' });
  let ends = 0;
  const isPaused = async () => (await scene.stateOf('bad'))?.paused != null;
  for (let isOver = false; !isOver; ) {
    expect(ends).toBeLessThan(10);
    await using worker = await scene.start(`--import=${BLOCK_AT}`, { BLOCK_AT: '/bad', BLOCKED_LIMIT: '2' });
    const ended = worker.exited.then(() => 'ended');
    const paused = until(isPaused, CALM).then(() => 'paused');
    paused.catch(() => {});
    isOver = (await Promise.race([ended, paused])) === 'paused';
    if (isOver) break;
    ends += 1;
    expect([(await worker.exited).signal, worker.output()]).toEqual([
      'SIGKILL',
      expect.stringContaining('the event loop was blocked for 2 s (BLOCKED_LIMIT)'),
    ]);
    await scene.untilEnded(worker);
  }
  expect(ends).toBeGreaterThanOrEqual(2);
  expect(scene.calls).not.toContain('bad');
  await using _worker = await scene.start(`--import=${BLOCK_AT}`, { BLOCK_AT: '/bad', BLOCKED_LIMIT: '2' });
  const before = scene.calls.filter((id) => id === 'good').length;
  await requestAttempt(
    scene.store.db,
    { schedule: 'good', slot: new Date().toISOString() },
    { cause: 'hand' },
  );
  await until(() => scene.calls.filter((id) => id === 'good').length > before, CALM);
}, 300_000);

it('a source that ends its workers is paused although other sources run at the same time', async () => {
  await using scene = await openScene({ bad: 'hangs', good: 'answers' });
  const isPaused = async () => (await scene.stateOf('bad'))?.paused != null;
  const runsOfGood = () => scene.calls.filter((id) => id === 'good').length;
  let ends = 0;
  for (; ; ends++) {
    expect(ends).toBeLessThan(5);
    await using worker = await scene.start();
    await until(async () => scene.hanging.has('bad') || (await isPaused()), CALM);
    if (await isPaused()) break;
    const before = runsOfGood();
    await requestAttempt(
      scene.store.db,
      { schedule: 'good', slot: new Date().toISOString() },
      { cause: 'hand' },
    );
    await until(
      async () => runsOfGood() > before && (await scene.stateOf('good'))?.lastRun?.outcome !== 'running',
      CALM,
    );
    await scene.kill(worker);
    await until(() => !scene.hanging.has('bad'), CALM);
    expect(await scene.aloneOf('bad')).toBe(0);
  }
  expect(ends).toBe(4);
  expect((await scene.stateOf('good'))?.paused).toBeNull();
}, 300_000);

it('concurrent runs are not blamed, and run one at a time after that', async () => {
  await using scene = await openScene({ a: 'hangs', b: 'hangs', c: 'hangs' });
  const first = await scene.start();
  await until(() => scene.hanging.size === 3, CALM);
  await until(
    async () =>
      (await scene.store.sql`select from sync_runs where alone and outcome = 'running'`).length === 0,
    CALM,
  );
  await scene.kill(first);
  for (const id of ['a', 'b', 'c']) expect(await scene.aloneOf(id)).toBe(0);

  // The first one answers in the end, so the next one runs, also alone.
  await using worker = await scene.start();
  await until(() => scene.hanging.size === 1, CALM);
  const callsBefore = scene.calls.length;
  const [turn] = scene.hanging;
  await until(async () => (await scene.stateOf(turn ?? ''))?.lastRun?.outcome === 'running', CALM);
  expect(scene.calls.length).toBe(callsBefore);
  await worker[Symbol.asyncDispose]();
  // A worker that stops in order ends its runs: none counts.
  for (const id of ['a', 'b', 'c']) expect(await scene.aloneOf(id)).toBe(0);
}, 300_000);

it('61 kB that decompress to millions of objects fail one run, and a worker with a small heap survives', async () => {
  expect(BOMB.length).toBeLessThan(100_000);
  await using scene = await openScene({ bomb: 'sends a bomb', good: 'answers' });
  await using worker = await scene.start('--max-old-space-size=128');
  const state = await until(async () => {
    const found = await scene.stateOf('bomb');
    return found?.lastRun?.outcome === 'failed' && found;
  }, CALM);
  expect(state.lastRun?.error, worker.output()).toMatch(
    /lists more than 250000 rows.*split it into several sources/,
  );
  await until(async () => (await scene.stateOf('good'))?.lastRun?.outcome === 'changed', CALM);
  expect(worker.child.exitCode).toBeNull();
}, 300_000);
