/** Every change of the stock of a machine is a row with its time, whichever step changes it. */
import fc from 'fast-check';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { readStock, stockPeriods } from '../../../src/db/stock.ts';
import type { ExclusionReason } from '../../../src/domain/machine.ts';
import { availableShare, MOST_STOCK_CHANGES } from '../../../src/domain/stock.ts';
import { discontinueEnded } from '../../../src/sync/catalogue/end-of-sale.ts';
import { retireSource } from '../../../src/sync/runs/retire-source.ts';
import { runs } from '../../support/random.ts';
import { cluster } from '../clusters/rows.ts';
import { LAX, OPERATOR, offer, openScene, region, type Scene } from '../scene.ts';

let scene: Scene;
beforeAll(async () => {
  scene = await openScene();
  return () => scene[Symbol.asyncDispose]();
});
beforeEach(() => scene.reset());

type State = 'available' | 'absent' | ExclusionReason;

/** A run of a source with one machine in this state, and one that is always there. */
const run = (state: State, settings: Parameters<Scene['catalogue']>[1] = {}) =>
  scene.catalogue(
    [
      region('a'),
      offer('a', 'steady'),
      ...(state === 'absent' ? [] : [offer('a', 'm', state === 'available' ? {} : { excluded: state })]),
    ],
    { limits: LAX, ...settings },
  );
const idOf = async (name = 'm') => {
  const [row] = await scene.sql<{ id: number }[]>`select id from machines where name = ${name}`;
  return row?.id ?? expect.unreachable(name);
};
const stored = async (name?: string) =>
  (await readStock(scene.store.db, await idOf(name))) ?? expect.unreachable();
/** Each change as `hour: before → after`. The clock of the scene counts hours. */
const changes = async (name?: string) =>
  (await stored(name)).changes
    .toReversed()
    .map(({ at, before, after }) => `${hourOf(at)}: ${before} → ${after}`);
const hourOf = (at: string) => (Date.parse(at) - Date.UTC(2026, 0, 1)) / 3_600_000;
const periods = async (name?: string) =>
  stockPeriods(await stored(name)).map(
    ({ stock, from, to }) => `${stock} ${hourOf(from)}–${to === null ? '' : hourOf(to)}`,
  );

describe('changes of stock', () => {
  it('are a row each, and the first read begins the first period', async () => {
    await run('available');
    expect([await changes(), await periods()]).toEqual([[], ['available 1–']]);
    await run('sold_out');
    await run('sold_out');
    await run('available');
    expect(await changes()).toEqual(['2: available → sold_out', '4: sold_out → available']);
    expect(await periods()).toEqual(['available 4–', 'sold_out 2–4', 'available 1–2']);
    expect([await changes('steady'), await periods('steady')]).toEqual([[], ['available 1–']]);
    expect((await stored('steady')).times).toBeNull();
  });

  it('include the retirement of a machine and its return', async () => {
    await run('available');
    for (let i = 0; i < 5; i++) await run('absent');
    const [end] = await changes();
    expect(end).toMatch(/^\d: available → null$/);
    const at = Number(end?.[0]);
    expect(await periods()).toEqual([`available 1–${at}`]);
    await run('sold_out');
    await run('available');
    expect(await changes()).toEqual([end, '7: null → sold_out', '8: sold_out → available']);
    expect(await periods()).toEqual(['available 8–', 'sold_out 7–8', `available 1–${at}`]);
  });

  it('have a gap while a machine is excluded for another reason than its stock', async () => {
    await run('accelerated');
    expect([await changes(), await periods()]).toEqual([[], []]);
    await run('available');
    await run('licensed');
    await run('unavailable');
    await run('sold_out');
    expect(await changes()).toEqual(['2: null → available', '3: available → null', '5: null → sold_out']);
    expect(await periods()).toEqual(['sold_out 5–', 'available 2–3']);
    // Known since hour 2, and to be ordered in one of the hours.
    const { times } = await stored();
    expect(availableShare(times ?? [], false, Date.UTC(2026, 0, 1, 6))).toBe(0.25);
  });

  it('include the end of a sale', async () => {
    const facts = { orderableUntil: '2026-01-02T00:00:00Z' };
    await scene.catalogue(
      [region('a'), offer('a', 'm', { facts }), offer('a', 'gone', { facts, excluded: 'sold_out' })],
      { limits: LAX },
    );
    expect(await discontinueEnded(scene.store.db, '2026-01-02T00:00:00Z')).toBe(2);
    expect([await changes(), await changes('gone')]).toEqual([
      ['24: available → null'],
      ['24: sold_out → null'],
    ]);
    expect([await periods(), await periods('gone')]).toEqual([['available 1–24'], ['sold_out 1–24']]);
    expect((await stored('gone')).times).toHaveLength(1);
  });

  it('include the retirement of a source', async () => {
    await run('sold_out');
    await retireSource(scene.store, 'acme', '2026-01-02T00:00:00Z', OPERATOR);
    expect([await changes(), await changes('steady')]).toEqual([
      ['24: sold_out → null'],
      ['24: available → null'],
    ]);
    expect((await stored('steady')).stock).toBeNull();
  });

  it('at one time are one row: a source may be retired in the millisecond of its run', async () => {
    await run('available');
    await run('sold_out');
    await retireSource(scene.store, 'acme', '2026-01-01T02:00:00Z', OPERATOR);
    expect(await changes()).toEqual(['2: available → null']);
    expect(await periods()).toEqual(['available 1–2']);
  });

  it('are none of a machine that only clusters name, until a catalogue lists it', async () => {
    await run('absent');
    await scene.organization('org');
    const machine = { name: 'm', cpu: 9, ram: 9, ramUnit: 'Binary' } as const;
    await scene.clusters([cluster('one', { machine })]);
    expect([await changes(), await periods()]).toEqual([[], []]);
    await run('available');
    expect([await changes(), await periods()]).toEqual([['3: null → available'], ['available 3–']]);
  });

  it('are no rows for a price, a fact or a size that changes', async () => {
    await run('available');
    await scene.catalogue(
      [region('a'), offer('a', 'm', { amount: '0.07', cpu: 3 }), offer('a', 'steady', { amount: '0.05' })],
      { limits: LAX },
    );
    expect([await changes(), (await stored()).times]).toEqual([[], null]);
  });

  it('give the same share by their rows as by the times that the catalogue has, for every history', async () => {
    const states = fc.array(
      fc.constantFrom<State>('available', 'available', 'sold_out', 'unavailable', 'licensed', 'absent'),
      { minLength: 1, maxLength: 12 },
    );
    await fc.assert(
      fc.asyncProperty(states, async (given) => {
        await scene.reset();
        for (const state of given) await run(state, { approved: true });
        const rows = await scene.sql`select from machines where name = 'm'`;
        if (rows.length === 0) return;
        const found = await stored();
        const now = scene.now().getTime() + 1_800_000;
        const all = stockPeriods(found);
        const begin = Date.parse(all.at(-1)?.from ?? '');
        const ordered = all
          .filter(({ stock }) => stock === 'available')
          .reduce((sum, { from, to }) => sum + (to === null ? now : Date.parse(to)) - Date.parse(from), 0);
        if (found.stock === null) return;
        const expected = ordered / (now - begin);
        const share = availableShare(found.times ?? [], found.stock === 'available', now);
        expect(Math.abs(share - expected), given.join(' ')).toBeLessThan(0.001);
      }),
      { numRuns: runs(40) },
    );
  });

  it('keep few times, and every row', async () => {
    await run('available');
    const id = await idOf();
    const times = Array.from({ length: MOST_STOCK_CHANGES }, (_, i) => 1_767_200_000 + i);
    await scene.sql`update machines set stock = ${times} where id = ${id}`;
    await run('sold_out');
    const kept = (await stored()).times ?? [];
    expect([kept.length, kept[0], kept.at(-1)]).toEqual([
      MOST_STOCK_CHANGES,
      1_767_200_001,
      scene.now().getTime() / 1000,
    ]);
    // A change of 30 days before goes, except the last one of them: it gives the state at the begin.
    await scene.sql`update machines set stock = array[1, 2, 3] where id = ${id}`;
    await run('available');
    expect((await stored()).times).toEqual([3, scene.now().getTime() / 1000]);
  });

  it('have ascending times after the clock went back', async () => {
    const at = (hour: number) => ({ now: () => new Date(Date.UTC(2026, 0, 1, hour)) });
    await run('available', at(1));
    await run('sold_out', at(10));
    await run('available', at(9));
    const hours = ((await stored()).times ?? []).map((time) => hourOf(new Date(time * 1000).toISOString()));
    expect(hours).toEqual([1, 10, 10]);
    await run('sold_out', at(11));
    const { times } = await stored();
    expect(availableShare(times ?? [], false, Date.UTC(2026, 0, 1, 21))).toBe(0.5);
  });
});
