/** The requests of a run are stored at its end, successful or not. */

import { pino } from 'pino';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { composeWorker, type Worker } from '../../src/app/worker.ts';
import { readConfig } from '../../src/config/config.ts';
import { runRequests, sourceRuns } from '../../src/features/console/queries/runs.ts';
import { cancelRun } from '../../src/sync/runs/live.ts';
import { type FakeUpstream, fakeUpstream } from '../support/fake-upstream.ts';
import { createDatabase } from '../support/postgres.ts';
import { hetzner } from '../support/provider-answers.ts';
import { NO_RETRIES } from '../support/request-retries.ts';
import { runCommand } from '../support/run-command.ts';
import { OPERATOR } from '../sync/scene.ts';

const closing = new AsyncDisposableStack();
let env: Record<string, string>;
let worker: Worker;
let upstream: FakeUpstream;
const TOKEN = 'tok-8c1e-secret';

beforeAll(async () => {
  const database = closing.use(await createDatabase());
  env = {
    DATABASE_URL: database.url,
    REDIS_URL: 'redis://127.0.0.1:1',
    CATALOGUE_CURRENCY: 'EUR',
    HETZNER_TOKEN: TOKEN,
  };
});
afterAll(() => closing.disposeAsync());
beforeEach(async () => {
  await using opening = new AsyncDisposableStack();
  upstream = opening.use(await fakeUpstream());
  env.HETZNER_URL = upstream.url;
  worker = opening.use(
    composeWorker(readConfig(env), pino({ level: 'silent' }), { requestRetries: NO_RETRIES }),
  );
  const opened = opening.move();
  return () => opened.disposeAsync();
});

const run = async () => {
  const source = readConfig(env).sources.find(({ id }) => id === 'hetzner');
  return worker.runSource(source ?? expect.unreachable('it is configured'));
};
/** The outcome of the last run, and each of its requests. */
async function last() {
  const { db } = worker.store;
  const [row] = (await sourceRuns(db, 'hetzner', { limit: 1 })).rows;
  if (row === undefined) return expect.unreachable('it ran');
  const requests = await runRequests(db, row.id);
  const rows = requests?.kept.map(
    ({ address, status, attempts }) => `${status} ${address.replace(upstream.url, '')} ${attempts}`,
  );
  return { id: row.id, outcome: row.outcome, rows, requests };
}

it('of a run are stored in the order of their start, and the command shows them', async () => {
  hetzner(upstream, [{ names: ['cx11'] }, { names: ['cx21'] }], 2);
  await run();
  const { id, outcome, rows, requests } = await last();
  expect({ outcome, rows: rows?.toSorted() }).toEqual({
    outcome: 'changed',
    rows: [
      '200 /v1/locations?per_page=50&page=1 1',
      '200 /v1/pricing 1',
      '200 /v1/server_types?per_page=50&page=1 1',
      '200 /v1/server_types?per_page=50&page=2 1',
    ],
  });
  expect(requests).toMatchObject({ total: 4, attempts: 4, failed: 0 });
  expect(JSON.stringify(requests)).not.toContain(TOKEN);

  const { stdout } = await runCommand(['run', String(id)], env);
  expect(stdout).toMatch(
    /\n4 requests: [\d.]+ k?B decompressed, \d+ ms in total, 0 retries, 0 failed\nREQUEST/,
  );
  expect(stdout).toContain('/v1/server_types?per_page=50&page=2');
  const limited = (await runCommand(['run', String(id), '--limit', '1'], env)).stdout;
  expect(limited).toContain('… 3 more requests; see --all');
  const json = JSON.parse((await runCommand(['run', String(id), '--json'], env)).stdout);
  expect(json.requests).toEqual(requests);
});

it('of a failed run, with each request’s error', async () => {
  upstream.expect({ path: '/v1/locations', query: { page: '1', per_page: '50' } }, { status: 500 });
  await expect(run()).rejects.toThrow('500');
  const { outcome, rows, requests } = await last();
  expect({ outcome, rows }).toEqual({ outcome: 'failed', rows: ['500 /v1/locations?per_page=50&page=1 1'] });
  expect(requests).toMatchObject({ failed: 1, kept: [{ error: expect.stringContaining('500') }] });
});

it('of a run that an operator cancelled include the hanging one', async () => {
  const { arrived } = upstream.expect(
    { path: '/v1/locations', query: { page: '1', per_page: '50' } },
    { after: new Promise(() => {}) },
  );
  const running = run();
  await arrived;
  await cancelRun(worker.store.db, 'hetzner', undefined, OPERATOR);
  expect(await running).toMatchObject({ outcome: 'cancelled' });
  const { outcome, rows } = await last();
  expect({ outcome, rows }).toEqual({
    outcome: 'cancelled',
    rows: ['null /v1/locations?per_page=50&page=1 1'],
  });
});
