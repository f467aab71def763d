/** Settings that do not lead to a usable server: the message names setting, server and fix. */
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { cacheRedis, openLoggedRedis, queueRedis } from '../../src/app/connections.ts';
import { composeReader } from '../../src/app/reader.ts';
import { readConfig } from '../../src/config/config.ts';
import { readSettings } from '../../src/config/settings.ts';
import { openStore } from '../../src/db/connection/connect.ts';
import { postgresProblem } from '../../src/db/connection/server-problem.ts';
import { migrate } from '../../src/db/migration/migrate.ts';
import { freePort } from '../../src/processes/port.ts';
import { redisReady } from '../../src/redis/redis.ts';
import { fleetbook } from '../support/fleetbook.ts';
import { createDatabase, run, type TestDatabase } from '../support/postgres.ts';
import { startTestRedis, type TestRedis } from '../support/redis.ts';
import { runCommand } from '../support/run-command.ts';
import { until } from '../support/until.ts';

const silent = pino({ level: 'silent' });
const opened = new AsyncDisposableStack();
let db: TestDatabase;
let redis: TestRedis;
let closedPort: number;
beforeAll(async () => {
  db = opened.use(await createDatabase());
  redis = opened.use(await startTestRedis());
  closedPort = await freePort();
});
afterAll(() => opened.disposeAsync());

const PASSWORD = 'not-the-one';
const changed = (url: string, change: (parsed: URL) => void): string => {
  const parsed = new URL(url);
  change(parsed);
  return parsed.href;
};
const wrongPassword = (parsed: URL) => {
  parsed.password = PASSWORD;
};
const refused = (parsed: URL) => {
  parsed.port = String(closedPort);
};
const unknownHost = (parsed: URL) => {
  parsed.hostname = 'nowhere.invalid';
};

describe('a command', () => {
  const cases: readonly (readonly [what: string, change: (parsed: URL) => void, message: RegExp])[] = [
    ['whose password is wrong', wrongPassword, /refuses the password .*correct it in DATABASE_URL$/],
    [
      'whose port has no listener',
      refused,
      /refuses connections: start it, or correct host and port in DATABASE_URL$/,
    ],
    ['whose host is not known', unknownHost, /nowhere\.invalid:\d+ cannot be found.*in DATABASE_URL$/],
    [
      'whose name is wrong',
      (parsed) => {
        parsed.pathname = '/nothing_here';
      },
      /has no such database .*nothing_here.*in DATABASE_URL$/,
    ],
    [
      'that has no TLS',
      (parsed) => parsed.searchParams.set('sslmode', 'require'),
      /TLS.*sslmode.* in DATABASE_URL/,
    ],
  ];
  it.each(cases)('recognizes a database %s', async (_, change, expected) => {
    const server = { setting: 'DATABASE_URL', url: changed(db.url, change) };
    await using store = openStore({ url: server.url, role: 'worker' });
    for (const failing of [migrate(server.url), store.sql`select 1`]) {
      const why = await failing.then(
        () => 'it works',
        (error: unknown) => postgresProblem(error, server),
      );
      expect(why).toMatch(/^PostgreSQL at [\w.]+:\d+ /);
      expect(why).toMatch(expected);
      expect(why).not.toContain(PASSWORD);
    }
  });

  it('reports it in one line, and exits with 1', async () => {
    const env = { DATABASE_URL: changed(db.url, wrongPassword), REDIS_URL: redis.url };
    const { code, stdout, stderr } = await fleetbook(['status'], env);
    expect({ code, stdout, lines: stderr.trim().split('\n').length }).toEqual({
      code: 1,
      stdout: '',
      lines: 1,
    });
    expect(stderr.trim()).toMatch(
      /^fleetbook: PostgreSQL at .* refuses the password .*correct it in DATABASE_URL$/,
    );
    expect(stderr).not.toContain(PASSWORD);
  });

  it.each([
    ['operator', 'create', 'ada', '--role', 'admin'],
    ['operator', 'token', 'create', 'ada'],
    ['operator', 'disable', 'ada'],
  ])('that changes something reports it too: %s %s %s', async (...words) => {
    const env = { DATABASE_URL: changed(db.url, refused), REDIS_URL: redis.url };
    expect(await runCommand(words, env)).toEqual({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(
        /^fleetbook: PostgreSQL at .* refuses connections: .* in DATABASE_URL\n$/,
      ),
    });
  });

  it('reports a database without migrations', async () => {
    await using empty = await createDatabase({ migrated: false });
    const { code, stderr } = await runCommand(['status'], { DATABASE_URL: empty.url, REDIS_URL: redis.url });
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringMatching(
        /^fleetbook: PostgreSQL at .* is not migrated to this release \(.*\): run `fleetbook migrate`\n$/,
      ),
    });
  });

  it.each([
    [
      'whose password is wrong',
      'CACHE_REDIS_URL',
      wrongPassword,
      /refuses the user or the password .*correct it in CACHE_REDIS_URL/,
    ],
    ['whose port has no listener', 'CACHE_REDIS_URL', refused, /refuses connections.* in CACHE_REDIS_URL$/],
    ['whose port has no listener', 'REDIS_URL', refused, /refuses connections.* in REDIS_URL$/],
    [
      'whose host is not known',
      'REDIS_URL',
      unknownHost,
      /nowhere\.invalid:\d+ cannot be found.*in REDIS_URL$/,
    ],
    [
      'without TLS',
      'REDIS_URL',
      (parsed: URL) => {
        parsed.protocol = 'rediss:';
      },
      /redis:\/\/ or rediss:\/\/ in REDIS_URL/,
    ],
  ] as const)('recognizes a Redis %s (%s)', async (_, setting, change, expected) => {
    const env = { REDIS_URL: redis.url, [setting]: changed(redis.url, change) };
    const connection = openLoggedRedis(cacheRedis({ settings: readSettings(env) }), 'publisher', silent);
    const why = await redisReady(connection, 2500).catch((error: Error) => error.message);
    connection.disconnect();
    expect(why).toMatch(/^Redis at [\w.]+:\d+ /);
    expect(why).toMatch(expected);
    expect(why).not.toContain(PASSWORD);
  });

  it('names the setting of each Redis', () => {
    const settings = readSettings({ REDIS_URL: 'redis://both', QUEUE_REDIS_URL: 'redis://queue' });
    expect(queueRedis({ settings })).toEqual({ setting: 'QUEUE_REDIS_URL', url: 'redis://queue' });
    expect(cacheRedis({ settings })).toEqual({ setting: 'REDIS_URL', url: 'redis://both' });
  });
});

describe('a reader, which starts in any case', () => {
  it.each([
    // If the readers' server has no answer, the primary is read.
    ['READER_DATABASE_URL', /refuses the password .*correct it in READER_DATABASE_URL/, true],
    ['DATABASE_URL', /refuses the password .*correct it in DATABASE_URL/, false],
  ])('logs what is wrong with %s', async (setting, expected, isReady) => {
    let logged = '';
    const logger = pino(
      {},
      {
        write(line: string) {
          logged += line;
        },
      },
    );
    const env = { DATABASE_URL: db.url, REDIS_URL: redis.url, [setting]: changed(db.url, wrongPassword) };
    await using tier = await composeReader(readConfig(env), logger);
    await until(async () => (await tier.readiness()).ready === isReady && expected.test(logged));
    expect(logged).not.toContain(PASSWORD);
  });
});

describe('migrate', () => {
  it('names the database and the applied migrations, or that none are pending', async () => {
    await using empty = await createDatabase({ migrated: false });
    const env = { DATABASE_URL: empty.url };
    const { host } = new URL(inject('postgres').adminUrl);
    const first = await fleetbook(['migrate'], env);
    expect(first.code).toBe(0);
    expect(first.stdout.replaceAll(/\s+/g, ' ')).toMatch(
      new RegExp(`^database ${empty.name} at ${host}: applied \\d+ migrations?: 0000_baseline`),
    );
    expect((await runCommand(['migrate'], env)).stdout).toBe(
      `database ${empty.name} at ${host} is up to date: nothing to do\n`,
    );
    expect(JSON.parse((await runCommand(['migrate', '--json'], env)).stdout)).toEqual({
      migrated: true,
      applied: [],
      isLater: false,
      database: `database ${empty.name} at ${host}`,
    });
  });

  it('reports that a later release was here', async () => {
    await using later = await createDatabase();
    await run(
      later.url,
      `insert into drizzle.__drizzle_migrations (hash, created_at) values ('later', 9999999999999)`,
    );
    expect((await runCommand(['migrate'], { DATABASE_URL: later.url })).stdout).toMatch(/of a later release/);
  });
});
