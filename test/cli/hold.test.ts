import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { fakeUpstream } from '../support/fake-upstream.ts';
import { createDatabase } from '../support/postgres.ts';
import { hetznerPricing } from '../support/provider-answers.ts';
import { startTestRedis } from '../support/redis.ts';
import { runCommand } from '../support/run-command.ts';

const NAMES = ['cx11', 'cx21', 'cx31', 'cx41', 'cx51', 'cx61'];

/** Hetzner's answers with six types in one location, each price multiplied. */
async function hetzner(names: readonly string[], factor: number) {
  const upstream = await fakeUpstream();
  const meta = { pagination: { page: 1, next_page: null, total_entries: null } };
  const types = names.map((name, index) => ({
    name,
    cores: 2,
    memory: 4,
    deprecated: false,
    deprecation: null,
    prices: [{ location: 'fsn1', price_hourly: { net: String((index + 1) * 0.01 * factor) } }],
  }));
  const query = { page: '1', per_page: '50' };
  upstream.expect(
    { path: '/v1/locations', query },
    { json: { locations: [{ name: 'fsn1', city: 'Falkenstein' }], meta } },
  );
  upstream.expect({ path: '/v1/server_types', query }, { json: { server_types: types, meta } });
  hetznerPricing(upstream);
  return upstream;
}

describe('a held batch', () => {
  const closing = new AsyncDisposableStack();
  let env: Record<string, string>;

  beforeAll(async () => {
    const database = closing.use(await createDatabase());
    const redis = closing.use(await startTestRedis());
    env = { DATABASE_URL: database.url, REDIS_URL: redis.url, CATALOGUE_CURRENCY: 'EUR' };
  });
  afterAll(() => closing.disposeAsync());

  async function sync(names: readonly string[], factor: number) {
    await using upstream = await hetzner(names, factor);
    return await runCommand(['sync', 'hetzner'], { ...env, HETZNER_URL: upstream.url });
  }
  const operator = (...args: string[]) => runCommand(args, { ...env, HETZNER_URL: 'http://127.0.0.1:1' });

  it('is listed, shown with its changes, and rejected', async () => {
    expect((await sync(NAMES, 1)).code).toBe(0);
    expect((await operator('hold', 'list')).stdout).toBe('no batch is held\n');
    expect(await sync(NAMES, 100)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('6 of 6 rows would change the price of a machine by more than a'),
    });

    const { stdout: list } = await operator('hold', 'list');
    expect(list).toMatch(
      /^hetzner: batch 1, held since .* rows: all 6 prices × 100: a unit\? 6 of 6 known rows have another price \(100 %, limit 50 %\); .*by 100/,
    );
    const { REDIS_URL: _, ...withoutRedis } = env;
    const { stdout: shown } = await runCommand(['hold', 'show', 'hetzner'], {
      ...withoutRedis,
      HETZNER_TOKEN: 'x',
    });
    expect(shown).toContain('6 known: 0 gone, 6 changed (6 in price), 0 new');
    expect(shown).toMatch(/~ price {2}cx11 @ fsn1 {2}0\.01 → 1 EUR\/h \(× 100\)/);
    const status = JSON.parse((await operator('status', '--json')).stdout);
    expect(status[0]).toMatchObject({ id: 'hetzner', held: 1, lastRun: { outcome: 'held' } });

    expect(await operator('hold', 'reject', 'hetzner')).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/name the batch: .*hold show hetzner; .*hold reject hetzner 1/),
    });
    expect(await operator('hold', 'reject', 'hetzner', '1', '--yes', '--reason', 'cents')).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('batch 1 is rejected'),
    });
    expect((await operator('hold', 'list')).stdout).toBe('no batch is held\n');
    const { stdout: decided } = await operator('hold', 'list', '--all');
    expect(decided).toMatch(/\n {2}rejected .* by \S+@\S+ \("cents"\)\n/);
    const { stdout: rejected } = await operator('hold', 'show', 'hetzner', '1');
    expect(rejected).toMatch(
      /^rejected \S+ by \S+ \("cents"\)\nread by run 2; see: fleetbook run <number>$/m,
    );
    expect(rejected).toMatch(/all 6 prices × 100: a\s+unit\?/);
    expect(rejected).toMatch(/^what it would have changed:\nprice {2}cx\d1 @ fsn1 {2}0\.0\d .*→ .*EUR/m);
  });

  it('is stored when it is approved, and the next run changes nothing', async () => {
    expect((await sync(NAMES.slice(0, 2), 1)).code).toBe(1);
    const { stdout: shown } = await operator('hold', 'show', 'hetzner');
    expect(shown).toContain('4 gone');
    expect(shown).toMatch(/- gone {2}cx31 @ fsn1\n/);
    expect(await operator('hold', 'approve', 'hetzner', '1')).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(
        /batch 1 already has a decision: rejected .* Batch 2 waits now: .*hold show hetzner/,
      ),
    });
    const approved = await operator(
      'hold',
      'approve',
      'hetzner',
      '2',
      '--yes',
      '--by',
      'ada',
      '--reason',
      'cleanup',
    );
    expect(approved.stdout).toMatch(/^hetzner: batch 2 is stored: 0 new, 0 changed, 4 retired\. To undo/);
    const undone = await operator('hold', 'undo', 'hetzner', '2', '--yes', '--by', 'bob');
    expect(undone.stdout).toMatch(/the data of before batch 2 again: 4 returned, 0 changed back, 0 retired/);
    const decided = (await operator('hold', 'show', 'hetzner', '2', '--limit', '1')).stdout;
    expect(decided.replaceAll(/\s+/g, ' ')).toMatch(
      /approved \S+ by ada \("cleanup"\), undone \S+ by bob read by run 3, stored by run 4, undone by run 5; see/,
    );
    expect(decided).toMatch(/^what its approval changed:\n- retired .*\n {2}… 3 more retired; see --all/m);
    const json = JSON.parse((await operator('hold', 'show', 'hetzner', '2', '--json')).stdout);
    expect(json).toMatchObject({
      status: 'undone',
      trail: { heldBy: 3, storedBy: 4, undoneBy: 5 },
      stored: { id: 4, totals: { retired: 4 } },
    });
    expect(json.stored.rows).toHaveLength(4);
    const runs = JSON.parse((await operator('runs', 'hetzner', '--json', '--limit', '2')).stdout);
    expect(runs.rows).toMatchObject([
      { decision: { kind: 'undo', batch: 2, by: 'bob', reason: null }, added: 4 },
      { decision: { kind: 'approve', batch: 2, by: 'ada', reason: 'cleanup' }, retired: 4 },
    ]);
    for (const [{ id }, kind] of [
      [runs.rows[0], 'returned'],
      [runs.rows[1], 'retired'],
    ] as const) {
      const diff = JSON.parse((await operator('run', String(id), '--json')).stdout);
      expect(diff.rows.map(({ change }: { change: string }) => change)).toEqual(Array(4).fill(kind));
    }
    expect((await operator('runs', 'hetzner')).stdout).toMatch(
      /undid the approval of batch 2 by bob\n\d+: stored the approved batch 2 by ada: cleanup\n/,
    );
    const [record] = JSON.parse((await operator('hold', 'list', '--all', '--json')).stdout);
    expect(record).toMatchObject({
      id: 2,
      status: 'undone',
      decidedBy: 'ada',
      reason: 'cleanup',
      undoneBy: 'bob',
      reversible: false,
    });
    expect((await sync(NAMES, 100)).code).toBe(1);
    for (const [given, message] of [
      [[], /nothing was decided: an approval without a terminal needs a reason: .*--yes --reason/],
      [['--yes'], /an approval without a terminal needs a reason/],
      [['--reason', 'a new tariff'], /nothing was decided, because there is no terminal .* --yes/],
    ] as const)
      expect(await operator('hold', 'approve', 'hetzner', '3', ...given)).toMatchObject({
        code: 2,
        stderr: expect.stringMatching(message),
      });
    expect(await operator('hold', 'reject', 'hetzner', '3')).toMatchObject({ code: 2 });
    expect((await operator('hold', 'list')).stdout).toContain('hetzner: batch 3, held');
    expect(
      (await operator('hold', 'approve', 'hetzner', '3', '--yes', '--reason', 'a new tariff')).stdout,
    ).toMatch(/^hetzner: batch 3 is stored: 0 new, 6 changed, 0 retired/);
    expect((await sync(NAMES, 100)).stdout).toMatch(/^hetzner: unchanged/);
  });

  it('leaves a price history', async () => {
    const { stdout } = await operator('prices', '1');
    const lines = stdout.trimEnd().split('\n');
    expect(lines[0]).toBe('cx11 @ fsn1, Hetzner, EUR per hour');
    expect(lines[1]).toMatch(/ – now {14,}1 {2}1 EUR\/hour$/);
    expect(lines[2]).toMatch(/ – \d{4}-\d\d-\d\d \d\d:\d\d {6,}0\.01 {2}0\.01 EUR\/hour$/);
    expect(JSON.parse((await operator('prices', '1', '--json')).stdout).prices).toHaveLength(2);
    expect(await operator('prices', '4711')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('no machine 4711'),
    });
    expect(await operator('prices', 'cx11')).toMatchObject({ code: 2 });
  });

  it('is found by the id of its source', async () => {
    expect(await operator('hold', 'show', 'linode')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('no batch of "linode" is held'),
    });
  });
});
