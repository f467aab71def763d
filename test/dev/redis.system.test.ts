import { execFile } from 'node:child_process';
import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Redis } from 'ioredis';
import { expect, it } from 'vitest';
import { identify } from '../../src/dev/process-identity.ts';
import { findRedisServer, type RedisBinary, startRedis } from '../../src/dev/redis.ts';
import { findSetpriv } from '../../src/processes/server-process.ts';
import { needs, SETPRIV } from '../support/needs.ts';
import { startProgram } from '../support/program.ts';
import { startTestRedis } from '../support/redis.ts';
import { until } from '../support/until.ts';

const PROGRAM = join(import.meta.dirname, 'programs/redis.ts');

function binary(): RedisBinary {
  const found = findRedisServer();
  if (!found) throw new Error('no Redis server');
  return found;
}

/** A connection that fails at once instead of retrying. */
function connect(url: string): Redis & Disposable {
  const client = new Redis(url, { maxRetriesPerRequest: 0, retryStrategy: () => null, commandTimeout: 300 });
  client.on('error', () => {});
  return Object.assign(client, { [Symbol.dispose]: () => client.disconnect() });
}

async function settings(client: Redis, ...names: string[]): Promise<unknown[]> {
  const pairs = await Promise.all(names.map((name) => client.config('GET', name)));
  return pairs.flat();
}

it('starts an empty server beside the file of another one', async () => {
  await using dir = await mkdtempDisposable(join(tmpdir(), 'fleetbook-redis-'));
  const other = ['--dbfilename', 'dump.rdb'];
  {
    await using server = await startRedis({ binary: binary(), dir: dir.path, args: other });
    using client = connect(server.url);
    await client.set('key', 'of another server');
    await client.save();
  }
  await using server = await startRedis({ binary: binary(), dir: dir.path });
  using client = connect(server.url);
  expect(await client.dbsize()).toBe(0);
});

it('starts a server in memory that never evicts, only on 127.0.0.1', async () => {
  await using server = await startRedis({ binary: binary() });
  using client = connect(server.url);
  expect(await settings(client, 'save', 'appendonly', 'maxmemory-policy', 'bind')).toEqual([
    'save',
    '',
    'appendonly',
    'no',
    'maxmemory-policy',
    'noeviction',
    'bind',
    '127.0.0.1',
  ]);
});

it('rejects clients without its password, which no process list shows', async () => {
  await using server = await startRedis({ binary: binary() });
  using stranger = connect(`redis://127.0.0.1:${server.port}`);
  await expect(stranger.get('anything')).rejects.toThrow('NOAUTH');
  const { stdout } = await promisify(execFile)('ps', ['-ww', '-o', 'args=', '-p', String(server.pid)]);
  expect(stdout).toContain(`127.0.0.1:${server.port}`);
  expect(stdout).not.toContain(server.password);
});

it('passes further settings on', async () => {
  await using server = await startRedis({
    binary: binary(),
    args: ['--maxmemory', '3mb', '--maxmemory-policy', 'allkeys-lru'],
  });
  using client = connect(server.url);
  expect(await settings(client, 'maxmemory', 'maxmemory-policy')).toEqual([
    'maxmemory',
    '3145728',
    'maxmemory-policy',
    'allkeys-lru',
  ]);
});

it('reports in the server’s words why it did not start', async () => {
  await using first = await startRedis({ binary: binary() });
  await expect(startRedis({ binary: binary(), port: first.port })).rejects.toThrow(
    /did not start on port \d+:.*in use/s,
  );
  await expect(startRedis({ binary: binary(), args: ['--no-such-setting', 'x'] })).rejects.toThrow(
    /no-such-setting/,
  );
});

it(
  'ends with the process that started it, also if that one is killed',
  needs(findSetpriv() !== undefined, SETPRIV),
  async () => {
    await using program = await startProgram(PROGRAM, []);
    const { pid } = await program.answer();
    expect(identify(Number(pid))).toBeDefined();
    program.child.kill('SIGKILL');
    await until(() => identify(Number(pid)) === undefined, { what: 'the end of the orphaned Redis' });
  },
);

it('can be crashed and started again, empty, at the same address', async () => {
  await using redis = await startTestRedis();
  using before = connect(redis.url);
  await before.set('key', 'value');
  await redis.kill();
  using during = connect(redis.url);
  await expect(during.get('key')).rejects.toThrow();
  await redis.restart();
  using after = connect(redis.url);
  expect(await after.get('key')).toBeNull();
});

it('can be paused so that it does not answer, and continues with all data', async () => {
  await using redis = await startTestRedis();
  using client = connect(redis.url);
  await client.set('key', 'value');
  redis.pause();
  await expect(client.get('key')).rejects.toThrow('timed out');
  redis.resume();
  expect(await until(() => client.get('key'))).toBe('value');
});

it('can be stopped while it is paused', async () => {
  const redis = await startRedis({ binary: binary() });
  redis.signal('SIGSTOP');
  await redis.stop();
  expect(identify(redis.pid)).toBeUndefined();
});
