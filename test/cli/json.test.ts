/** `--json` of the commands that change something: one value is the whole standard output. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { fakeUpstream } from '../support/fake-upstream.ts';
import { createDatabase } from '../support/postgres.ts';
import { hetzner } from '../support/provider-answers.ts';
import { startTestRedis } from '../support/redis.ts';
import { runCommand } from '../support/run-command.ts';

const closing = new AsyncDisposableStack();
let env: Record<string, string>;
beforeAll(async () => {
  const database = closing.use(await createDatabase({ migrated: false }));
  const redis = closing.use(await startTestRedis());
  env = { DATABASE_URL: database.url, REDIS_URL: redis.url, CATALOGUE_CURRENCY: 'EUR' };
});
afterAll(() => closing.disposeAsync());

const run = (...args: string[]) =>
  runCommand([...args, '--json'], { HETZNER_URL: 'http://127.0.0.1:1', ...env });
async function sync(names: readonly string[]) {
  await using upstream = await fakeUpstream();
  hetzner(upstream, [{ names }], names.length);
  return await runCommand(['sync', 'hetzner', '--json'], { ...env, HETZNER_URL: upstream.url });
}
const NAMES = ['cx11', 'cx21', 'cx31', 'cx41', 'cx51', 'cx61'];

it('migrate, sync, publish, hold reject and hold approve report their effects to a program', async () => {
  const migrated = await run('migrate');
  expect({ ...migrated, stdout: JSON.parse(migrated.stdout) }).toEqual({
    code: 0,
    stdout: {
      migrated: true,
      applied: expect.arrayContaining(['0000_baseline']),
      isLater: false,
      database: expect.stringMatching(/^database test_\w+ at /),
    },
    stderr: '',
  });

  const first = await sync(NAMES);
  expect(first.code).toBe(0);
  expect(JSON.parse(first.stdout)).toEqual({
    source: 'hetzner',
    outcome: 'changed',
    counts: { seen: 6, added: 6, changed: 0, retired: 0, rejected: 0, withdrawn: 0 },
    broken: [],
    rejected: [],
    reasons: [],
    missingRates: [],
    withdrawn: [],
    regions: 1,
    unread: 0,
    short: [],
    published: true,
  });
  const published = await run('publish');
  expect(JSON.parse(published.stdout)).toEqual({ published: 0 });

  const held = await sync(NAMES.slice(0, 2));
  expect({ code: held.code, output: JSON.parse(held.stdout) }).toEqual({
    code: 1,
    output: expect.objectContaining({
      source: 'hetzner',
      outcome: 'held',
      broken: [expect.objectContaining({ guard: expect.any(String), detail: expect.any(String) })],
      published: false,
    }),
  });
  expect(held.stderr).toContain('held for a decision');
  const rejected = await run('hold', 'reject', 'hetzner', '1', '--yes', '--by', 'ada', '--reason', 'why not');
  expect(JSON.parse(rejected.stdout)).toEqual({
    source: 'hetzner',
    batch: 1,
    decision: 'rejected',
    by: 'ada',
    reason: 'why not',
  });

  expect((await sync(NAMES.slice(0, 2))).code).toBe(1);
  const approved = await run('hold', 'approve', 'hetzner', '2', '--yes', '--reason', 'it is right');
  expect(JSON.parse(approved.stdout)).toEqual({
    source: 'hetzner',
    batch: 2,
    decision: 'approved',
    by: expect.stringContaining('@'),
    reason: 'it is right',
    counts: expect.objectContaining({ retired: 4 }),
    published: true,
  });
});

it('a failed command prints nothing on standard output', async () => {
  for (const args of [
    ['sync', 'linode'],
    ['hold', 'reject', 'hetzner'],
    ['sync', 'hetzner'],
  ]) {
    const { code, stdout, stderr } = await run(...args);
    expect({ failed: code > 0, stdout }).toEqual({ failed: true, stdout: '' });
    expect(stderr).toMatch(/^fleetbook: /);
  }
});
