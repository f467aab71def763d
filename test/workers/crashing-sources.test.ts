/** A source that crashes its worker, in separate processes. */
import { mkdtempDisposable, writeFile } from 'node:fs/promises';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { openStore } from '../../src/db/connection/connect.ts';
import { IS_LIVE } from '../../src/db/runs/records.ts';
import { sourceStatus } from '../../src/db/sources.ts';
import { enableSource, interruptedRuns } from '../../src/db/sync/disabled.ts';
import { evaluateAlerts } from '../../src/features/alerts/evaluate.ts';
import { NO_ALERTS } from '../../src/features/alerts/rules.ts';
import { freePort } from '../../src/processes/port.ts';
import { openRedis, redisReady } from '../../src/redis/redis.ts';
import { queuePrefix, SYNC_QUEUE } from '../../workers/queues.ts';
import { createDatabase } from '../support/postgres.ts';
import { CLI, type Program, startProgram } from '../support/program.ts';
import { startTestRedis } from '../support/redis.ts';
import { until } from '../support/until.ts';

/** Its latest slot stays the same for the whole test run. */
const YEARLY = '0 0 1 1 *';
const RATES = `<gesmes:Envelope><Cube><Cube time='2026-11-20'><Cube currency='USD' rate='1.1'/></Cube></Cube></gesmes:Envelope>`;
const LIST = 'region_code,name,cpu,ram,ram_unit,price,per,currency\nr1,m1,1,2,GiB,0.01,hour,EUR\n';
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
    start: async (nodeOptions = ''): Promise<Program> =>
      startProgram(CLI, ['work'], {
        env: {
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
    /** Kills a worker as the system does, and removes its jobs' locks, which would expire in seconds. */
    async kill(worker: Program) {
      worker.child.kill('SIGKILL');
      await worker.exited;
      // A run counts as interrupted once PostgreSQL detects its closed connection, which takes longer on a busy
      // machine.
      await until(async () => (await runsUnderWay()) === 0, CALM);
      const prefix = `${await queuePrefix(store.sql)}:${SYNC_QUEUE}`;
      for (const id of await producer.lrange(`${prefix}:active`, 0, -1)) {
        await producer.del(`${prefix}:${id}:lock`);
        await producer.sadd(`${prefix}:stalled`, id);
      }
      await producer.del(`${prefix}:stalled-check`);
    },
    async stateOf(id: string) {
      return (await sourceStatus(store.sql)).find((source) => source.id === id);
    },
    async aloneOf(id: string) {
      return (await interruptedRuns(store.db, id)).alone.length;
    },
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  };
}

it('a source whose runs crashed their process twice is suspended, the others continue, and an operator resumes it', async () => {
  await using scene = await openScene({ bad: 'hangs', good: 'answers' });
  // A run that was not alone does not count: under load the other source is late.
  for (let deaths = 1; (await scene.aloneOf('bad')) < 2; deaths++) {
    expect(deaths).toBeLessThan(10);
    await using worker = await scene.start();
    // The other source is done: the process ends with only one run.
    await until(async () => (await scene.stateOf('good'))?.lastRun?.outcome === 'changed', CALM);
    await until(() => scene.hanging.has('bad'), CALM);
    await scene.kill(worker);
    await until(() => !scene.hanging.has('bad'), CALM);
  }
  const before = scene.calls.filter((id) => id === 'bad').length;
  await using worker = await scene.start();
  const state = await until(async () => {
    const found = await scene.stateOf('bad');
    return found?.disabled && found;
  }, CALM);
  expect(state.disabled).toMatchObject({
    by: 'fleetbook work',
    reason: expect.stringMatching(/^its runs \d+ and \d+ ended the process of their worker; check/),
  });
  const rules = { ...NO_ALERTS, failuresInRow: 99 };
  const watched = ['bad', 'good'].map((id) => ({ id, kind: 'catalogue' as const, maxAge: 1e9 }));
  // The worker evaluates too, and may have opened it.
  await until(() => evaluateAlerts(scene.store.db, watched, rules, new Date()));
  expect(await scene.store.sql`select kind, summary from alerts where resolved_at is null`).toMatchObject([
    { kind: 'source_set_aside', summary: expect.stringContaining('fleetbook source enable bad') },
  ]);
  expect(scene.calls.filter((id) => id === 'bad')).toHaveLength(before);
  expect(worker.child.exitCode).toBeNull();

  scene.behaviours.set('bad', 'answers');
  await enableSource(scene.store.db, 'bad', {
    by: 'ada',
    how: 'cli',
    address: undefined,
    reason: 'it is well',
  });
  await until(async () => (await scene.stateOf('bad'))?.lastRun?.outcome === 'changed', CALM);
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
