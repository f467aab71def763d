import { expect, it } from 'vitest';
import { fakeUpstream } from '../support/fake-upstream.ts';
import { createDatabase } from '../support/postgres.ts';
import { CLI, startProgram } from '../support/program.ts';
import { hetzner } from '../support/provider-answers.ts';
import { startTestRedis } from '../support/redis.ts';
import { runCommand } from '../support/run-command.ts';
import { until } from '../support/until.ts';

it('a worker logs an unconfigured source at its start, and then knows the configured ones', async () => {
  await using database = await createDatabase();
  await using redis = await startTestRedis();
  await using upstream = await fakeUpstream();
  const names = ['cx11', 'cx21', 'cx31'];
  hetzner(upstream, [{ names }], names.length);
  const env = { DATABASE_URL: database.url, REDIS_URL: redis.url, CATALOGUE_CURRENCY: 'EUR' };
  expect((await runCommand(['sync', 'hetzner'], { ...env, HETZNER_URL: upstream.url })).code).toBe(0);
  const LINODE_URL = 'http://127.0.0.1:1';
  await using worker = await startProgram(CLI, ['work'], {
    env: { PATH: process.env.PATH, ...env, LINODE_URL, EXCHANGE_RATES_URL: LINODE_URL, OPS_PORT: '0' },
  });
  await until(() => /hetzner: not configured here: its 3 machines/.test(worker.output()), {});
  const known = JSON.parse((await runCommand(['status', '--json'], env)).stdout) as { id: string }[];
  expect(known.map(({ id }) => id)).toEqual(['exchange-rates', 'hetzner', 'linode']);
});
