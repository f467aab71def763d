import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { syncRates } from '../../src/sync/rates.ts';
import { retireSource } from '../../src/sync/runs/retire-source.ts';
import { registerSource } from '../../src/sync/runs/run.ts';
import { runCommand } from '../support/run-command.ts';
import { cluster } from '../sync/clusters/rows.ts';
import { LAX, OPERATOR, offer, offers, openScene, region, type Scene } from '../sync/scene.ts';

let scene: Scene;
let env: Record<string, string>;
beforeAll(async () => {
  scene = await openScene();
  env = { DATABASE_URL: scene.db.url };
  await scene.organization('org');
  await scene.sql`update lineage set changes_since = '2025-06-01'`;
  // Runs 1 to 6.
  await scene.catalogue([region('fsn1', 'Falkenstein'), ...offers('fsn1', 30)]);
  const long = 'a-type-with-a-name-that-is-as-long-as-some-upstreams-like-their-names-to-be';
  const next = [
    region('fsn1', 'Falkenstein 1'),
    ...offers('fsn1', 24).slice(3),
    offer('fsn1', 'm1', { amount: '0.09' }),
    offer('fsn1', 'm2', { cpu: 4, ram: 8 }),
    offer('fsn1', 'm3', { excluded: 'discontinued' }),
    offer('fsn1', long),
  ];
  await scene.catalogue(next, { limits: LAX, approved: true });
  await scene.catalogue([region('fsn1'), ...offers('fsn1', 2)]);
  await scene.clusters([cluster('one'), cluster('two')]);
  await scene.clusters([cluster('one', { status: 'Stopped', shards: 2 })], {
    limits: LAX,
    missingIsDeleted: true,
  });
  await scene.catalogue([region('fsn1', 'Falkenstein 1'), offer('fsn1', 'other')], {
    source: 'second',
    provider: { id: 78, name: 'Second' },
  });
});
afterAll(() => scene[Symbol.asyncDispose]());

const operator = (...args: string[]) => runCommand(args, env);
const tooLong = (text: string) => text.split('\n').filter((line) => line.length > 80);

describe('fleetbook runs', () => {
  it('lists the runs of a source, newest first, and why one was held', async () => {
    const { code, stdout } = await operator('runs', 'acme');
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /^RUN +AGO +OUTCOME +SEEN +NEW +CHANGED +RETIRED +REJECTED\n3 .* held .*\n2 .* changed +25 +1 +3 +6 +0\n1 /,
    );
    expect(stdout).toMatch(/\n3: .* known rows are not reported any more.*/);
    expect(tooLong(stdout)).toEqual([]);
    expect((await operator('runs', 'acme', '--limit', '1')).stdout).toContain(
      '… 2 more; see --all, or --limit',
    );
    const json = JSON.parse((await operator('runs', 'acme', '--json', '--limit', '2')).stdout);
    expect(json).toMatchObject({ source: 'acme', total: 3, rows: [{ id: 3, heldBatch: 1 }, { id: 2 }] });
  });

  it('rejects a source that never ran, and an invalid limit', async () => {
    expect(await operator('runs', 'unknown')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('no source "unknown" has run yet'),
    });
    expect(await operator('runs', 'acme', '--limit', '0')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--limit must be a number from 1'),
    });
  });
});

describe('fleetbook run', () => {
  it('shows each machine before and after, and the total of each kind', async () => {
    const { code, stdout } = await operator('run', '2', '--limit', '2');
    expect(code).toBe(0);
    expect(stdout).toMatch(/^run 2 of acme: changed, began /);
    expect(stdout).toContain('25 rows, 1 new, 3 changed, 6 retired, 0 rejected, 1 withdrawn\n');
    expect(stdout).toContain('region fsn1 has another name: Falkenstein → Falkenstein 1\n');
    expect(stdout).toMatch(/- retired +m25 @ fsn1 +0\.06 USD\/hour\n/);
    expect(stdout).toContain('… 4 more retired; see --all');
    expect(stdout).toMatch(/- withdrawn +m3 @ fsn1 +0\.06 USD\/hour, shown → discontinued\n/);
    expect(stdout).toMatch(/~ reshaped +m2 @ fsn1 +0\.06 USD\/hour, 2 cpu 4 GiB → 4 cpu 8 GiB\n/);
    expect(stdout).toMatch(/~ repriced +m1 @ fsn1 +0\.06 → 0\.09 USD\/hour \(× 1\.50\)\n/);
    // The long name has a separate line.
    const whole = (await operator('run', '2', '--all')).stdout;
    expect(whole).not.toContain('more');
    expect(tooLong(whole)).toEqual([]);
    expect(whole).toContain('+ added');

    const json = JSON.parse((await operator('run', '2', '--json')).stdout);
    expect(json).toMatchObject({
      id: 2,
      sourceId: 'acme',
      isKept: true,
      unshown: 0,
      totals: { retired: 6, withdrawn: 1, reshaped: 1, repriced: 1, added: 1 },
      namings: [{ region: 'fsn1', before: 'Falkenstein', after: 'Falkenstein 1' }],
    });
    expect(json.rows).toHaveLength(10);
    expect(JSON.parse((await operator('run', '1', '--json', '--limit', '3')).stdout)).toMatchObject({
      totals: { added: 30 },
      rows: [{ before: null, after: { cpu: 2, ram: 4, amount: '0.06' } }, {}, {}],
    });
  });

  it('shows clusters with their organization, field by field', async () => {
    const { stdout } = await operator('run', '5');
    expect(stdout).toContain('- retired org/two (two): Acme, a, Active, unlisted 2 cpu 4 GiB\n');
    expect(stdout).toContain('~ changed org/one (one):\n    status: Active → Stopped\n    shards: 1 → 2\n');
  });

  it('states what it omits: converted prices and deleted changes', async () => {
    const priced = [region('a'), ...offers('a', 3, { price: { currency: 'EUR' } })];
    const here = { source: 'euro', provider: { id: 79, name: 'Euro' } };
    await scene.catalogue(priced, { ...here, rates: { EUR: '2' } });
    await scene.catalogue(priced, { ...here, rates: { EUR: '3' } });
    const [row] = await scene.sql<
      { id: number }[]
    >`select max(id)::int as id from sync_runs where source_id = 'euro'`;
    const last = String(row?.id);
    expect((await operator('run', last)).stdout).toContain(
      'and 3 changed only because an exchange rate changed\n',
    );
    await scene.sql`update sync_runs set changed_at = null where id = ${last}`;
    const { stdout } = await operator('run', last);
    expect(stdout).toContain('its changes are not stored, or are deleted');
    expect(JSON.parse((await operator('run', last, '--json')).stdout)).toMatchObject({ isKept: false });
  });

  it('shows exchange rates without repeated ones', async () => {
    const read = async (asOf: string, perEuro: Record<string, string>) => {
      await registerSource(scene.store.db, { id: 'bank', kind: 'rates', adapter: 'ecb' });
      const { run } = await scene.liveRuns.begin('bank', undefined);
      const rates = Promise.resolve({ asOf, perEuro });
      await syncRates({ store: scene.store, run, rates, now: scene.now });
      return await operator('run', String(run.id));
    };
    expect((await read('2026-01-01', { USD: '1.10', CHF: '0.9' })).stdout).toMatch(
      /0 rejected\n\n\+ CHF {2}0\.9 for 1 EUR\n\+ USD {2}1\.10 for 1 EUR\n$/,
    );
    expect((await read('2026-01-02', { USD: '1.12', CHF: '0.9' })).stdout).toMatch(
      /2 changed, .*\n\n~ USD {2}1\.10 → 1\.12 for 1 EUR\n$/,
    );
  });

  it('rejects an invalid run', async () => {
    expect(await operator('run', '4711')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('there is no run 4711'),
    });
    expect(await operator('run', 'acme')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(
        '"acme" is not a run number; give the number that `fleetbook runs <source>` shows',
      ),
    });
  });
});

describe('fleetbook changes', () => {
  it('shows prices, new and retired machines since a time, with time and place', async () => {
    const { code, stdout } = await operator('changes', '--since', '2026-01-01T01:30:00Z', '--limit', '2');
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /^since 2026-01-01T01:30:00Z: 1 price move, \d arrivals, 7 departures, 1 other\nclusters: 2 new, 1 changed, 1 retired\n/,
    );
    expect(stdout).toMatch(/more retired; see --all/);
    expect(stdout).toMatch(/~ repriced +\d+ d +Acme +m1 @ fsn1/);
    expect(stdout).toMatch(/~ changed org\/one/);
    expect(tooLong((await operator('changes', '--since', '2026-01-01', '--all')).stdout)).toEqual([]);
  });

  it('shows those of one provider, by name or id', async () => {
    for (const provider of ['second', '78']) {
      const json = JSON.parse(
        (await operator('changes', '--since', '2026-01-01', '--provider', provider, '--json')).stdout,
      );
      expect(json).toMatchObject({
        since: '2026-01-01T00:00:00.000Z',
        isComplete: true,
        provider: 'Second',
        machines: { totals: { added: 1, retired: 0 }, rows: [{ name: 'other', provider: 'Second' }] },
        clusters: { rows: [] },
      });
    }
    expect(await operator('changes', '--since', '24h', '--provider', 'unknown')).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(
        /--provider "unknown": there is no such provider; known providers: .*Acme \(77\)/,
      ),
    });
  });

  it('includes machines that were retired without a run, and states the start of the complete history', async () => {
    await retireSource(scene.store, 'second', new Date().toISOString(), OPERATOR);
    const { stdout } = await operator('changes', '--since', '1h');
    expect(stdout).toMatch(/: 0 price moves, 0 arrivals, 1 departure, 0 other\n/);
    expect(stdout).toMatch(/- retired +\d+ s +Second +other @ fsn1/);
    const early = await operator('changes', '--since', '2025-01-01');
    expect(early.stdout).toContain('the record of changes begins at 2025-06-01T00:00:00Z; CHANGES_KEPT sets');
    expect(JSON.parse((await operator('changes', '--since', '2025-01-01', '--json')).stdout)).toMatchObject({
      isComplete: false,
      keptSince: '2025-06-01T00:00:00Z',
    });
  });

  it.each([
    [[], "required option '--since <when>' not specified"],
    [['--since', 'yesterday'], '--since "yesterday" is not a time; use e.g. 24h, 7d'],
    [['--since', '2026-02-31T25:00:00Z'], 'is not a time'],
    [['--since', '2999-01-01'], 'is in the future'],
  ])('rejects %j', async (args, message) => {
    expect(await operator('changes', ...args)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(message),
    });
  });
});
