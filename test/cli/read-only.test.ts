/** Commands that only read need only PostgreSQL. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openStore } from '../../src/db/connection/connect.ts';
import { beginRun, registerSource } from '../../src/sync/runs/run.ts';
import { addSample } from '../snapshot/rows.ts';
import { createDatabase, type TestDatabase } from '../support/postgres.ts';
import { runCommand } from '../support/run-command.ts';

const opened = new AsyncDisposableStack();
let db: TestDatabase;
beforeAll(async () => {
  db = opened.use(await createDatabase());
  await using store = openStore({ url: db.url, role: 'worker', connections: 1 });
  await addSample(store.sql);
  await registerSource(store.db, { id: 'hetzner', kind: 'catalogue', adapter: 'hetzner' });
  await beginRun(store.db, 'hetzner', undefined);
});
afterAll(() => opened.disposeAsync());

it.each([
  [['status']],
  [['status', '--json']],
  [['source', 'list']],
  [['source', 'list', '--json']],
  [['source', 'show', 'hetzner']],
  [['source', 'show', 'hetzner', '--json']],
  [['hold', 'list']],
  [['hold', 'list', '--all']],
  [['prices', '1']],
  [['machines']],
  [['clusters']],
  [['rejected', 'hetzner']],
  [['excluded', 'hetzner']],
  [['runs', 'hetzner']],
  [['run', '1']],
  [['changes', '--since', '24h']],
  [['org', 'list']],
  [['user', 'list', '--org', 'a']],
  [['token', 'list']],
  [['token', 'list', '--org', 'a']],
  [['audit', '--since', '7d']],
  [['audit', '--json']],
])('%j', async (args) => {
  const env = { DATABASE_URL: db.url, HETZNER_URL: 'http://127.0.0.1:1', HETZNER_TOKEN: 'x' };
  expect(await runCommand(args, env)).toMatchObject({ code: 0, stderr: '' });
});

it('an unavailable Redis does not matter', async () => {
  const env = { DATABASE_URL: db.url, REDIS_URL: 'redis://127.0.0.1:1' };
  for (const args of [['status'], ['operator', 'list'], ['operator', 'token', 'list']])
    expect(await runCommand(args, env)).toMatchObject({ code: 0, stderr: '' });
});
