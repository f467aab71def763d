/** `serve` with SNAPSHOT_DIR: the real program, started again while Redis and PostgreSQL cannot be reached. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { openStore } from '../../../src/db/connection/connect.ts';
import { createToken, revokeToken } from '../../../src/db/tokens.ts';
import { freePort } from '../../../src/processes/port.ts';
import { needs } from '../../support/needs.ts';
import { createDatabase, type TestDatabase } from '../../support/postgres.ts';
import { CLI, type Program, startProgram } from '../../support/program.ts';
import { runs } from '../../support/random.ts';
import { startTestRedis, type TestRedis } from '../../support/redis.ts';
import { until } from '../../support/until.ts';
import { type RunningPublisher, startPublisher } from '../published.ts';
import { addMachines, addSample, reprice, type Sample } from '../rows.ts';

const OPS_TOKEN = 'the-operators-token-of-these-tests';

const KINDS = ['providers', 'region', 'clusters', 'token'];
/** A restart may lose the time between two dumps, and a moment for the disk (ms). */
const LOST_MS = 5000 + 1500;

const opened = new AsyncDisposableStack();
let db: TestDatabase;
let redis: TestRedis;
let sample: Sample;
let publisher: RunningPublisher;
let store: ReturnType<typeof openStore>;
let folder: string;

beforeAll(async () => {
  db = opened.use(await createDatabase());
  redis = opened.use(await startTestRedis());
  store = opened.use(openStore({ url: db.url, role: 'worker', connections: 2 }));
  sample = await addSample(store.sql);
  await addMachines(store.sql, sample.region, 30);
  publisher = opened.use(await startPublisher(store.db, redis.url));
});
afterAll(() => opened.disposeAsync());
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'fleetbook-serve-dump-'));
  opened.defer(() => rm(folder, { recursive: true, force: true }));
});

async function newToken(): Promise<{ token: string; id: number }> {
  const scopes = ['machines:read', 'clusters:read'] as const;
  return createToken(store.db, { organizationId: sample.a, scopes });
}

interface Shown {
  readonly status: number;
  readonly tier: string | null;
  readonly body: string;
  readonly all: string;
}

interface Serving extends AsyncDisposable {
  readonly program: Program;
  getOnce(path: string, token: string): Promise<Shown>;
  /** Repeats a request after a 503: on a busy machine even the disk may miss its deadline. */
  get(path: string, token: string): Promise<Shown>;
  metrics(): Promise<string>;
  ready(): Promise<{ status: number; checks: Record<string, string> }>;
}

/** @param isDown whether its settings name servers that do not exist */
async function serve(isDown: boolean, more: Record<string, string> = {}): Promise<Serving> {
  const [port, opsPort, unusedPort] = [await freePort(), await freePort(), await freePort()];
  const servers = isDown
    ? {
        DATABASE_URL: `postgres://u:p@127.0.0.1:${unusedPort}/d`,
        REDIS_URL: `redis://127.0.0.1:${unusedPort}`,
      }
    : { DATABASE_URL: db.url, REDIS_URL: redis.url };
  const program = await startProgram(CLI, ['serve'], {
    env: {
      PATH: process.env.PATH,
      ...servers,
      OPS_TOKEN,
      SNAPSHOT_DIR: folder,
      PORT: String(port),
      OPS_PORT: String(opsPort),
      ...more,
    },
  });
  const url = `http://127.0.0.1:${port}`;
  try {
    await until(async () => (await fetch(`${url}/healthz`)).ok);
  } catch (error) {
    await program[Symbol.asyncDispose]();
    throw new Error(`serve did not start:\n${program.output()}`, { cause: error });
  }
  const getOnce = async (path: string, token: string): Promise<Shown> => {
    // A new connection each time, to any of the processes.
    const headers = { authorization: `Bearer ${token}`, 'accept-encoding': 'identity', connection: 'close' };
    const answer = await fetch(url + path, { headers });
    const body = await answer.text();
    const shown = ['etag', 'fleetbook-as-of', 'fleetbook-currency', 'content-type', 'cache-control', 'vary'];
    const all = JSON.stringify([answer.status, body, shown.map((name) => answer.headers.get(name))]);
    return { status: answer.status, tier: answer.headers.get('fleetbook-tier'), body, all };
  };
  return {
    program,
    getOnce,
    get: (path, token) =>
      until(async () => {
        const answer = await getOnce(path, token);
        return answer.status !== 503 && answer;
      }),
    metrics() {
      const headers = { authorization: `Bearer ${OPS_TOKEN}` };
      // The operators' pages listen some time after the first answers.
      return until(async () => (await fetch(`http://127.0.0.1:${opsPort}/metrics`, { headers })).text());
    },
    async ready() {
      const answer = await fetch(`${url}/readyz`);
      return {
        status: answer.status,
        checks: ((await answer.json()) as { checks: Record<string, string> }).checks,
      };
    },
    [Symbol.asyncDispose]: () => program[Symbol.asyncDispose](),
  };
}

const paths = () => [
  '/v1/providers',
  `/v1/machines?provider=${sample.provider}&region=${sample.region}`,
  `/v1/machines/${sample.small}`,
  '/v1/clusters',
  '/v1/clusters/cluster-test',
];

async function kill({ program }: Serving): Promise<void> {
  program.child.kill('SIGKILL');
  await program.exited;
}

/** Returns the dump of one process; an empty text before the first one. */
function dumpIn(inFolder: string): string {
  const file = join(inFolder, 'documents.dump');
  return existsSync(file) ? readFileSync(file, 'latin1') : '';
}

const has = (inFolder: string, ...kinds: string[]): boolean =>
  kinds.every((kind) => dumpIn(inFolder).includes(`{"id":"${kind}`));

describe('a reader that is killed and started with all servers down', () => {
  it('becomes ready and answers as before, as tier disk', async () => {
    const { token } = await newToken();
    await publisher.publishDirty();
    await using before = await serve(false);
    const expected: string[] = [];
    for (const path of paths()) {
      const answer = await before.get(path, token);
      expect([path, answer.status]).toEqual([path, 200]);
      expected.push(answer.all);
    }
    await until(() => has(folder, ...KINDS));
    expect((await before.ready()).checks.tier).toMatch(/^(memory|redis|postgres)$/);
    await kill(before);
    await using after = await serve(true);
    await until(async () => (await after.ready()).status === 200);
    expect(await after.ready()).toEqual({
      status: 200,
      checks: { catalogue: 'ok', cache: 'not linked: this reader cannot read it', tier: 'disk' },
    });
    for (const [i, path] of paths().entries()) {
      const answer = await after.get(path, token);
      expect([path, answer.tier, answer.all]).toEqual([path, 'disk', expected[i]]);
    }
    expect((await after.getOnce(`/v1/machines/${sample.small}/prices`, token)).status).toBe(503);
    expect(await after.metrics()).toMatch(/fleetbook_reads_total\{.*tier="disk".*\} \d/);
  });

  it('without SNAPSHOT_DIR is alive, not ready, and answers 503', async () => {
    const { token } = await newToken();
    await using after = await serve(true, { SNAPSHOT_DIR: '' });
    const ready = await after.ready();
    expect(ready.status).toBe(503);
    expect(Object.keys(ready.checks)).toEqual(['catalogue', 'cache']);
    expect((await after.getOnce('/v1/providers', token)).status).toBe(503);
  });

  it('rejects a revoked token', async () => {
    const { token, id } = await newToken();
    await publisher.publishDirty();
    await using before = await serve(false);
    expect((await before.get('/v1/providers', token)).status).toBe(200);
    await until(() => has(folder, 'providers', 'token'));
    await revokeToken(store.db, id);
    await publisher.publishDirty();
    await until(async () => (await before.get('/v1/providers', token)).status === 401);
    await until(() => dumpIn(folder).includes('"revoked":true'));
    await kill(before);
    await using after = await serve(true);
    expect((await after.get('/v1/providers', token)).status).toBe(401);
  });

  it('killed during many price changes, gives one that was current within the last seconds, or a later one', {
    timeout: 240_000,
  }, async () => {
    const { token } = await newToken();
    await publisher.publishDirty();
    const path = `/v1/machines/${sample.small}`;
    const price = ({ body }: { body: string }) => (JSON.parse(body) as { price: number }).price;
    for (let round = 1; round <= runs(5); round++) {
      await using before = await serve(false);
      await before.get(paths()[1] ?? '', token);
      const first = { price: price(await before.get(path, token)), at: performance.now() };
      const given = [first];
      const answers = 1 + Math.floor(Math.random() * 30);
      // A reader that served for a shorter time may leave what the previous round left.
      for (let i = 1; i <= answers || performance.now() - first.at < LOST_MS; i++) {
        await reprice(store.sql, sample.small, String(round + i / 1000));
        await publisher.publishDirty();
        given.push({ price: price(await before.get(path, token)), at: performance.now() });
      }
      const lost = performance.now() - LOST_MS;
      await kill(before);
      await using after = await serve(true);
      const answer = await after.getOnce(path, token);
      const current = given.findLastIndex(({ at }) => at < lost);
      if (answer.status === 200)
        expect(given.slice(Math.max(0, current)).map((each) => each.price)).toContain(price(answer));
      else expect(answer.status).toBe(503);
      await kill(after);
    }
  });
});

describe('an unusable folder', () => {
  it('that cannot be made costs one log line, and shows in metrics and readiness; serving continues', async () => {
    const { token } = await newToken();
    await publisher.publishDirty();
    const file = join(folder, 'a file');
    writeFileSync(file, '');
    await using serving = await serve(false, { SNAPSHOT_DIR: file });
    for (const path of paths()) expect((await serving.get(path, token)).status).toBe(200);
    await until(() => serving.program.output().includes('SNAPSHOT_DIR cannot be written'));
    expect(await serving.metrics()).toMatch(/^fleetbook_dump_failing\{.*\} 1$/m);
    expect(await serving.ready()).toMatchObject({ status: 200, checks: { dump: 'cannot be written' } });
    await sleep(LOST_MS);
    expect(serving.program.output().match(/SNAPSHOT_DIR cannot be written/g)).toHaveLength(1);
    for (const path of paths()) expect((await serving.get(path, token)).status).toBe(200);
  });

  it('that is full is used again once there is room', needs(process.getuid?.() === 0, 'root'), async () => {
    const { token } = await newToken();
    await publisher.publishDirty();
    const disk = join(folder, 'disk');
    mkdirSync(disk);
    execFileSync('sh', ['-c', `mount -t tmpfs -o size=2m none '${disk}'`]);
    try {
      const fill = join(disk, 'of somebody else');
      await using serving = await serve(false, { SNAPSHOT_DIR: disk });
      expect((await serving.get('/v1/providers', token)).status).toBe(200);
      await until(() => has(disk, 'providers'));
      execFileSync('sh', ['-c', `cat /dev/zero > '${fill}' 2>/dev/null || true`]);
      const before = dumpIn(disk);
      for (const path of paths()) expect((await serving.get(path, token)).status).toBe(200);
      await until(() => serving.program.output().includes('SNAPSHOT_DIR cannot be written'));
      expect(dumpIn(disk)).toBe(before);
      expect(await serving.metrics()).toMatch(/^fleetbook_dump_failing\{.*\} 1$/m);
      rmSync(fill);
      await until(() => serving.program.output().includes('SNAPSHOT_DIR is written again'));
      expect(await serving.metrics()).toMatch(/^fleetbook_dump_failing\{.*\} 0$/m);
      expect((await serving.ready()).checks).not.toHaveProperty('dump');
      const expected = (await serving.get(paths()[1] ?? '', token)).all;
      await until(() => has(disk, ...KINDS));
      await kill(serving);
      await using after = await serve(true, { SNAPSHOT_DIR: disk });
      expect((await after.get(paths()[1] ?? '', token)).all).toBe(expected);
    } finally {
      await until(() => execFileSync('sh', ['-c', `umount '${disk}'`]) !== undefined);
    }
  });
});

it('each of several processes has its own dump', async () => {
  const { token } = await newToken();
  await publisher.publishDirty();
  const many = { PROCESSES: '2' };
  await using before = await serve(false, many);
  const dumps = ['serve-1', 'serve-2'].map((name) => join(folder, name));
  // A connection stays at one process, and each request needs some of each process's documents.
  await until(async () => {
    for (const path of paths()) expect((await before.get(path, token)).status).toBe(200);
    return dumps.every((each) => has(each, ...KINDS));
  });
  await before.program[Symbol.asyncDispose]();
  await using after = await serve(true, many);
  for (let i = 0; i < 4; i++)
    for (const path of paths()) expect((await after.get(path, token)).tier).toBe('disk');
});
