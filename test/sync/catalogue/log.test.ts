/** The history of machine changes of each run: exactly the changes, and no rows if nothing changed. */
import fc from 'fast-check';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { pruneChanges } from '../../../src/db/runs/stored-changes.ts';
import {
  type ChangeScope,
  changesKeptSince,
  type MachineChange,
  type MachineState,
  machineChanges,
} from '../../../src/features/console/queries/changes.ts';
import { runRecord, sourceRuns } from '../../../src/features/console/queries/runs.ts';
import type { CatalogueItem } from '../../../src/sources/source.ts';
import { retireSource } from '../../../src/sync/runs/retire-source.ts';
import { pruneRuns } from '../../../src/sync/runs/run.ts';
import { runs } from '../../support/random.ts';
import { cluster } from '../clusters/rows.ts';
import {
  LAX,
  OPERATOR,
  offer,
  offers,
  openScene,
  type RunSettings,
  region,
  rejected,
  type Scene,
} from '../scene.ts';

let scene: Scene;
beforeAll(async () => {
  scene = await openScene();
  return () => scene[Symbol.asyncDispose]();
});
beforeEach(() => scene.reset());

const ALL = { limit: undefined };
const changesOf = (scope: ChangeScope, page: { limit: number | undefined; offset?: number } = ALL) =>
  machineChanges(scene.store.db, scope, page);
/** Returns the newest run of a source. */
async function lastRun(source = 'acme') {
  const { rows } = await sourceRuns(scene.store.db, source, { limit: 1 });
  return rows[0] ?? expect.unreachable();
}
/** Returns the newest run with its diff. */
async function lastDiff(source = 'acme') {
  const run = await lastRun(source);
  return { run, ...(await changesOf({ runId: run.id })) };
}
const summary = ({ change, regionCode, name, before, after }: MachineChange) => [
  change,
  `${name}@${regionCode}`,
  short(before),
  short(after),
];
const short = (state: MachineState | null) =>
  state && `${state.cpu}/${state.ram} ${state.amount} ${state.currency} ${state.excluded ?? ''}`.trim();

describe('the diff of a run', () => {
  it('lists added, changed, withdrawn, returned and retired machines, each with its fields before and after', async () => {
    const first = [
      offer('a', 'shape'),
      offer('a', 'price'),
      offer('a', 'withdrawn'),
      offer('a', 'hidden', { excluded: 'unavailable' }),
      offer('a', 'shown', { excluded: 'discontinued' }),
      offer('a', 'gone'),
      offer('a', 'same'),
      offer('a', 'stock'),
    ];
    const settings = { limits: LAX };
    await scene.catalogue([region('a'), ...first], settings);
    const added = await lastDiff();
    expect(added.rows.map(summary)).toEqual([
      ['added', 'gone@a', null, '2/4 0.06 USD'],
      ['added', 'hidden@a', null, '2/4 0.06 USD unavailable'],
      ['added', 'price@a', null, '2/4 0.06 USD'],
      ['added', 'same@a', null, '2/4 0.06 USD'],
      ['added', 'shape@a', null, '2/4 0.06 USD'],
      ['added', 'shown@a', null, '2/4 0.06 USD discontinued'],
      ['added', 'stock@a', null, '2/4 0.06 USD'],
      ['added', 'withdrawn@a', null, '2/4 0.06 USD'],
    ]);
    expect(added.run).toMatchObject({
      sourceId: 'acme',
      kind: 'catalogue',
      outcome: 'changed',
      changedAt: '2026-01-01T01:00:00Z',
      namings: [
        { region: null, before: null, after: 'Acme' },
        { region: 'a', before: null, after: 'A' },
      ],
      decision: null,
      heldBatch: null,
    });

    const second = [
      region('a', 'Renamed'),
      offer('a', 'shape', { cpu: 4 }),
      offer('a', 'price', { amount: '0.09' }),
      offer('a', 'withdrawn', { excluded: 'discontinued', amount: '0.07' }),
      offer('a', 'stock', { excluded: 'unavailable', amount: '0.07' }),
      offer('a', 'hidden', { excluded: 'discontinued' }),
      offer('a', 'shown'),
      offer('a', 'same'),
      offer('a', 'new'),
    ];
    await scene.catalogue(second, { ...settings, approved: true });
    const changed = await lastDiff();
    expect(changed.rows.map(summary)).toEqual([
      ['retired', 'gone@a', '2/4 0.06 USD', null],
      ['withdrawn', 'withdrawn@a', '2/4 0.06 USD', '2/4 0.07 USD discontinued'],
      ['sold_out', 'stock@a', '2/4 0.06 USD', '2/4 0.07 USD sold_out'],
      ['reshaped', 'shape@a', '2/4 0.06 USD', '4/4 0.06 USD'],
      ['repriced', 'price@a', '2/4 0.06 USD', '2/4 0.09 USD'],
      ['excluded', 'hidden@a', '2/4 0.06 USD unavailable', '2/4 0.06 USD discontinued'],
      ['published', 'shown@a', '2/4 0.06 USD discontinued', '2/4 0.06 USD'],
      ['added', 'new@a', null, '2/4 0.06 USD'],
    ]);
    expect(changed.run.namings).toEqual([{ region: 'a', before: 'A', after: 'Renamed' }]);
    expect(changed.rows[0]).toMatchObject({
      runId: changed.run.id,
      changedAt: '2026-01-01T02:00:00Z',
      source: 'acme',
      provider: 'Acme',
    });

    await scene.catalogue([...second, offer('a', 'gone', { cpu: 8 })], settings);
    expect((await lastDiff()).rows.map(summary)).toEqual([
      ['returned', 'gone@a', '2/4 0.06 USD', '8/4 0.06 USD'],
    ]);
    // An added machine has its fields of that run.
    expect(await changesOf({ runId: added.run.id })).toEqual({ totals: added.totals, rows: added.rows });
  });

  it('is paged, with the number of changes of each kind', async () => {
    const many = [region('a'), region('b'), ...offers('a', 6), ...offers('b', 3)];
    await scene.catalogue(many, { limits: LAX });
    const next = [region('a'), region('b'), ...offers('a', 3, { cpu: 4 }), ...offers('b', 5)];
    await scene.catalogue(next, { limits: LAX, approved: true });
    const { run, rows, totals } = await lastDiff();
    expect(totals).toEqual({
      retired: 3,
      withdrawn: 0,
      sold_out: 0,
      reshaped: 3,
      repriced: 0,
      excluded: 0,
      changed: 0,
      restocked: 0,
      published: 0,
      returned: 0,
      added: 2,
    });
    expect(rows).toHaveLength(8);
    for (let limit = 1; limit <= 9; limit += 1) {
      const pages: MachineChange[] = [];
      for (let offset = 0; offset < 8; offset += limit)
        pages.push(...(await changesOf({ runId: run.id }, { limit, offset })).rows);
      expect(pages).toEqual(rows);
    }
    const firstPage = await machineChanges(scene.store.db, { runId: run.id }, ALL, ['added']);
    expect(firstPage).toEqual({ totals, rows: rows.slice(6) });
  });

  it('is empty and has no rows if a run changes nothing or holds its batch', async () => {
    const whole = [region('a'), ...offers('a', 10)];
    await scene.catalogue(whole);
    const before = await scene.rows('machine_changes', 'machines');
    await scene.catalogue(whole);
    expect(await lastDiff()).toMatchObject({ run: { outcome: 'unchanged', changedAt: null }, rows: [] });
    await scene.catalogue([region('a'), ...offers('a', 2)]);
    expect(await lastDiff()).toMatchObject({
      run: { outcome: 'held', changedAt: null, heldBatch: 1 },
      rows: [],
    });
    expect(await scene.rows('machine_changes', 'machines')).toEqual(before);
    expect(await runRecord(scene.store.db, 4711)).toBeUndefined();
    const runs = await sourceRuns(scene.store.db, 'acme', { limit: 2 });
    expect(runs).toMatchObject({ total: 3, rows: [{ outcome: 'held' }, { outcome: 'unchanged' }] });
  });

  it('omits machines whose price changed only by an exchange rate', async () => {
    const priced = [region('a'), ...offers('a', 3, { price: { currency: 'EUR' } })];
    await scene.catalogue(priced, { rates: { EUR: '2' } });
    await scene.catalogue(priced, { rates: { EUR: '3' } });
    expect(await lastDiff()).toMatchObject({ run: { outcome: 'changed', changed: 3 }, rows: [] });
  });

  it('lists a machine that clusters named first as added', async () => {
    await scene.organization('org');
    await scene.catalogue([region('a'), offer('a', 'x')]);
    await scene.clusters([cluster('one', { machine: { name: 'big', cpu: 16, ram: 64, ramUnit: 'Binary' } })]);
    await scene.catalogue([region('a'), offer('a', 'x'), offer('a', 'big', { cpu: 16, ram: 64 })]);
    const { rows, totals } = await lastDiff();
    expect(rows.map(summary)).toEqual([['added', 'big@a', null, '16/64 0.06 USD']]);
    expect(totals.added).toBe(1);
  });
});

describe('old changes', () => {
  /** Makes all past changes this many days older. */
  async function age(days: number): Promise<void> {
    const at = new Date(Date.now() - days * 86_400_000).toISOString();
    await scene.sql`update machine_changes set changed_at = ${at}`;
    await scene.sql`update sync_runs set changed_at = ${at} where changed_at is not null`;
  }
  const keptSince = async () => Date.parse(await changesKeptSince(scene.store.db));
  const DAY = 86_400_000;

  it('expire after their time, runs expire after theirs, and the start of the complete history is stored', async () => {
    const { db } = scene.store;
    await scene.sql`update lineage set changes_since = now() - interval '365 days'`;
    await scene.catalogue([region('a'), ...offers('a', 3)]);
    await scene.catalogue([region('a'), ...offers('a', 3, { amount: '0.07' })], { limits: LAX });
    const { run, rows } = await lastDiff();
    expect(rows).toHaveLength(3);
    await age(89);
    await scene.sql`
      insert into sync_runs (source_id, fence, outcome) select 'acme', 2 + n, 'unchanged' from generate_series(1, 2003) n`;
    await pruneChanges(db, 90);
    await pruneRuns(db);
    expect((await changesOf({ runId: run.id })).rows).toMatchObject([{}, {}, {}]);
    expect((Date.now() - (await keptSince())) / DAY).toBeCloseTo(365, 1);

    await age(91);
    await pruneChanges(db, 90);
    expect(await scene.sql`select from machine_changes`).toHaveLength(0);
    expect(await runRecord(scene.store.db, run.id)).toMatchObject({ outcome: 'changed', changedAt: null });
    expect((await changesOf({ runId: run.id })).rows).toEqual([]);
    expect((Date.now() - (await keptSince())) / DAY).toBeCloseTo(90, 1);
    await pruneRuns(db);
    expect(await runRecord(scene.store.db, run.id)).toBeUndefined();

    const before = await scene.rows('lineage', 'sync_runs');
    await pruneChanges(db, 90);
    expect(await scene.rows('lineage', 'sync_runs')).toEqual(before);
  });
});

const REGIONS = ['a', 'b'];
const KEYS = REGIONS.flatMap((code) => ['m', 'n', 'o'].map((name) => ({ code, name })));
type Report =
  | { amount: string; cpu: number; currency: string; architecture: string | null; excluded: boolean }
  | null
  | 'rejected';
const reports: fc.Arbitrary<Report> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      amount: fc.constantFrom('0.06', '0.06', '0.12', '0', '6'),
      cpu: fc.constantFrom(2, 2, 4),
      currency: fc.constantFrom('USD', 'USD', 'EUR'),
      architecture: fc.constantFrom(null, null, 'arm64', 'x86_64'),
      excluded: fc.constantFrom(false, false, false, true),
    }),
  },
  { weight: 2, arbitrary: fc.constant(null) },
  { weight: 1, arbitrary: fc.constant('rejected' as const) },
);
const SOURCES = ['acme', 'second'];
const step = fc.oneof(
  {
    weight: 9,
    arbitrary: fc.record({
      source: fc.constantFrom('acme', 'acme', 'second'),
      reports: fc.array(reports, { minLength: KEYS.length, maxLength: KEYS.length }),
      eur: fc.constantFrom('2', '2', '3', null),
      approved: fc.boolean(),
      /** With the usual limits a batch may be held or a price quarantined. */
      lax: fc.boolean(),
    }),
  },
  { weight: 1, arbitrary: fc.record({ retired: fc.constantFrom(...SOURCES) }) },
);

function itemsOf(rows: readonly Report[]): CatalogueItem[] {
  return [
    ...REGIONS.map((code) => region(code)),
    ...KEYS.flatMap(({ code, name }, index): CatalogueItem[] => {
      const one = rows[index];
      if (one === null || one === undefined) return [];
      if (one === 'rejected') return [rejected(`${name}@${code}`, { name, regionCode: code })];
      const { amount, currency, cpu, architecture, excluded } = one;
      const because = excluded ? { excluded: 'unavailable' as const } : {};
      return [offer(code, name, { cpu, price: { amount, currency }, facts: { architecture }, ...because })];
    }),
  ];
}

type State = Record<string, MachineState>;

/** Reads the machines that are not retired. */
async function stateOf(): Promise<State> {
  const rows = await scene.sql<{ key: string; state: MachineState }[]>`
    select m.name || '@' || r.code as key, json_build_object('cpu', m.cpu, 'ram', m.ram, 'ramUnit', m.ram_unit,
      'amount', m.source_amount::text, 'per', m.source_per, 'currency', m.source_currency,
      'excluded', m.excluded_reason, 'facts', case when m.architecture is not null
        then json_build_object('architecture', m.architecture) end) as state
    from machines m join regions r on r.id = m.region_id where m.retired_at is null`;
  return Object.fromEntries(rows.map(({ key, state }) => [key, state]));
}

/** Applies changes; each must begin at the present state. */
function applied(before: State, rows: readonly MachineChange[]): State {
  const after = { ...before };
  for (const { change, name, regionCode, before: old, after: now } of rows) {
    const key = `${name}@${regionCode}`;
    const isThere = !['added', 'returned'].includes(change);
    expect(after[key]).toEqual(isThere ? old : undefined);
    if (now === null) delete after[key];
    else after[key] = now;
    expect([key, now === null]).toEqual([key, change === 'retired']);
  }
  return after;
}

it('the diffs of all runs lead from each state to the next, for any sequence of syncs, approvals and retirements', async () => {
  const changing = [
    'withdrawn',
    'sold_out',
    'reshaped',
    'repriced',
    'excluded',
    'changed',
    'restocked',
    'published',
  ] as const;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 2, maxLength: 7 }), async (steps) => {
      await scene.reset();
      let state: State = {};
      const diffs: { runId: number; rows: readonly MachineChange[] }[] = [];
      for (const [index, one] of steps.entries()) {
        if ('retired' in one) {
          const now = new Date(scene.now().getTime() + (index + 1) * 1000).toISOString();
          await retireSource(scene.store, one.retired, now, OPERATOR);
          const { rows } = await changesOf({ since: now });
          expect(rows.filter(({ runId }) => runId !== null)).toEqual([]);
          state = applied(state, rows);
        } else {
          const settings: RunSettings = {
            source: one.source,
            rates: one.eur === null ? {} : { EUR: one.eur },
            approved: one.approved,
            ...(one.lax ? { limits: LAX } : {}),
          };
          await scene.catalogue(itemsOf(one.reports), settings);
          const { run, rows, totals } = await lastDiff(one.source);
          diffs.push({ runId: run.id, rows });
          expect({ added: totals.added + totals.returned, retired: totals.retired }).toEqual({
            added: run.added,
            retired: run.retired,
          });
          const changed = changing.reduce((sum, kind) => sum + totals[kind], 0);
          expect(changed).toBeLessThanOrEqual(run.changed ?? -1);
          state = applied(state, rows);
        }
        expect(state).toEqual(await stateOf());
      }
      // Later runs change no earlier diff.
      for (const { runId, rows } of diffs) expect((await changesOf({ runId })).rows).toEqual(rows);
      const all = await changesOf({ since: '2026-01-01T00:00:00Z' });
      const byRun = (runId: number) => all.rows.filter((row) => row.runId === runId);
      for (const { runId, rows } of diffs) expect(byRun(runId)).toEqual(rows);
    }),
    { numRuns: runs(25) },
  );
}, 240_000);
