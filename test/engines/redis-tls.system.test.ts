/** Redis over TLS: one server, a Redis Cluster, and servers behind Sentinels. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { startRedis } from '../../src/dev/redis.ts';
import { freePort } from '../../src/processes/port.ts';
import { runs } from '../support/random.ts';
import { redisBinary } from '../support/redis.ts';
import { startTestCluster } from './redis-cluster.ts';
import { startTestSentinels } from './redis-sentinel.ts';
import { AUTHORITY_FILE, tlsArgs } from './redis-tls.ts';

const PROGRAM = join(import.meta.dirname, 'programs/redis-clients.ts');

async function startServer() {
  const binary = redisBinary();
  const port = await freePort();
  const server = await startRedis({ binary, args: tlsArgs(port) });
  return {
    url: `rediss://:${server.password}@127.0.0.1:${port}`,
    [Symbol.asyncDispose]: () => server.stop(),
  };
}

async function use(
  url: string,
  withinMs: number,
  authority?: string,
): Promise<{ output: unknown; warnings: string }> {
  const env = { ...process.env, NODE_OPTIONS: '', NODE_EXTRA_CA_CERTS: authority };
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [PROGRAM, url, String(withinMs)], {
    env,
    timeout: 240_000,
  });
  return { output: JSON.parse(stdout), warnings: stderr };
}

const KINDS = {
  'of one server': startServer,
  'of a cluster': () => startTestCluster({ replicas: 0, tls: true }),
  'behind Sentinels': () => startTestSentinels({ tls: true }),
};

it.each(Object.entries(KINDS))(
  '%s is used in each way, once its authority is trusted',
  async (_, start) => {
    await using redis = await start();
    expect(await use(redis.url, 10_000, AUTHORITY_FILE)).toEqual({
      output: { received: 'of all', read: 50, job: { of: 'the queue' } },
      warnings: '',
    });
  },
  240_000,
);

// Several concurrently: a busy process aborts more handshakes.
it.each(Object.entries(KINDS))(
  '%s is named with the remedy if its authority is not trusted',
  async (_, start) => {
    await using redis = await start();
    const output = await Promise.all(
      Array.from({ length: runs(6) }, async () => (await use(redis.url, 1000)).output),
    );
    const error = expect.stringMatching(/cannot agree on TLS \(.*certificate.*\): .*NODE_EXTRA_CA_CERTS/);
    expect(output).toEqual(output.map(() => ({ error })));
  },
  240_000,
);
