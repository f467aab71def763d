/** The sentence about a held batch: real batches in PostgreSQL, through the whole comparison. */
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { headline } from '../../src/cli/held/hold-preview.ts';
import { sql } from '../../src/db/connection/drizzle.ts';
import { pendingBatches } from '../../src/db/held-batches.ts';
import { findProblems, readSourceFacts } from '../../src/db/problems.ts';
import { findConditions } from '../../src/features/notifications/conditions.ts';
import { DEFAULT_RULES } from '../../src/features/notifications/rules.ts';
import type { CatalogueItem } from '../../src/sources/source.ts';
import { patternOrNone } from '../../src/sync/runs/hold.ts';
import { cluster } from './clusters/rows.ts';
import {
  databasePlan,
  offer,
  offers,
  openScene,
  type RunSettings,
  region,
  regionPrice,
  rejected,
  type Scene,
} from './scene.ts';

let scene: Scene;
beforeAll(async () => {
  scene = await openScene();
  return () => scene[Symbol.asyncDispose]();
});
beforeEach(() => scene.reset());

const sentence = async () => {
  const [batch] = await pendingBatches(scene.store.db);
  return batch?.pattern ?? expect.unreachable('nothing is held');
};
const held = async (before: CatalogueItem[], after: CatalogueItem[], settings: RunSettings = {}) => {
  await scene.catalogue(before, { rates: RATES });
  expect(await scene.catalogue(after, { rates: RATES, ...settings })).toMatchObject({ outcome: 'held' });
  return sentence();
};

const RATES = { EUR: '1.1' };
const EUR = { currency: 'EUR' };
const [a, b, c] = [region('a'), region('b'), region('c')];
const whole = [a, b, ...offers('a', 8), ...offers('b', 4)];
const family = (name: string, where = 'a', prices: Record<string, string> = {}) =>
  [1, 2, 4, 8].map((cpu) => offer(where, `${name}${cpu}`, { cpu, ram: cpu * 2, ...prices }));
/** Three prices of traffic, which have no period. */
const traffic = (amount: string) =>
  ['cdn', 'internet', 'private'].map((name) =>
    regionPrice('a', {
      ...{ item: 'traffic_out', name, isDefault: name === 'internet', unit: 'GB', per: undefined },
      ...{ currency: 'USD', tiers: [{ from: '0', amount }] },
    }),
  );
/** Four prices that differ from each other, times a factor. */
const priced = (factor: number, price: Record<string, string> = {}, names = 'p') =>
  [0.01, 0.02, 0.04, 0.08].map((amount, index) =>
    offer('a', `${names}${index}`, {
      price: { amount: String(Number((amount * factor).toPrecision(12))), ...price } as never,
    }),
  );

describe('a held batch', () => {
  it.each<[what: string, before: CatalogueItem[], after: CatalogueItem[], expected: string, RunSettings?]>([
    [
      'has a hundredfold of all prices',
      [a, ...priced(1)],
      [a, ...priced(100)],
      'all 4 prices × 100: a unit?',
    ],
    ['has a hundredth of all prices', [a, ...priced(100)], [a, ...priced(1)], 'all 4 prices × 0.01: a unit?'],
    [
      'has the price of a month for that of an hour',
      [a, ...priced(1)],
      [a, ...priced(730)],
      'all 4 prices × 730: a period?',
    ],
    [
      'has a factor that rounding blurs',
      [a, ...priced(1)],
      [a, ...priced(1.19).slice(1), offer('a', 'p0', { amount: '0.012' })],
      'all 4 prices × 1.19: a price rise, or tax?',
    ],
    [
      'has one factor in one currency alone',
      [a, ...priced(1), ...priced(1, EUR, 'e')],
      [a, ...priced(1), ...priced(100, EUR, 'e')],
      'all 4 prices in EUR per hour × 100: a unit?',
    ],
    [
      'has one factor in two currencies',
      [a, ...priced(1), ...priced(1, EUR, 'e')],
      [a, ...priced(100), ...priced(100, EUR, 'e')],
      'all 8 prices × 100: a unit?',
    ],
    [
      'has the same amounts per month',
      [a, ...priced(1)],
      [a, ...priced(1, { per: 'month' })],
      'all 4 prices per month instead of per hour, the same amounts: a wrong period?',
    ],
    [
      'has other prices per month',
      [a, ...priced(1)],
      [a, ...priced(803, { per: 'month' })],
      'all 4 prices per month instead of per hour, amounts × 803: a wrong period?',
    ],
    [
      'has the same prices per month',
      [a, ...priced(1)],
      [a, ...priced(730, { per: 'month' })],
      'all 4 prices per month instead of per hour, amounts × 730: the same prices, stated otherwise?',
    ],
    [
      'has another name of the currency',
      [a, ...priced(1)],
      [a, ...priced(1, EUR)],
      'all 4 prices in EUR instead of USD, the same amounts: only the name of the currency?',
    ],
    [
      'has other prices without one factor',
      [a, ...priced(1)],
      [a, ...[2, 0.5, 3, 1.5].map((factor, index) => priced(factor)[index] as CatalogueItem)],
      'all 4 prices changed, × 0.5 to × 3: a new price list?',
    ],
    [
      'has some prices beside the common factor',
      [a, ...offers('a', 19), offer('a', 'other')],
      [a, ...offers('a', 19, { amount: '6' }), offer('a', 'other', { amount: '0.07' })],
      '19 of 20 prices × 100, and 1 other: a unit?',
    ],
    [
      'has only prices of zero',
      whole,
      [a, b, ...offers('a', 8, { amount: '0' }), ...offers('b', 4, { amount: '0' })],
      'all 12 prices zero: a missing field?',
    ],
    [
      'has prices for machines without one',
      [a, ...offers('a', 4, { amount: '0' })],
      [a, ...offers('a', 4, { amount: '5' })],
      'all 4 prices changed: a new price list?',
    ],
    ['lacks a region', whole, [a, b, ...offers('a', 8)], 'all 4 machines of region b gone: an outage?'],
    [
      'lacks two regions',
      [...whole, c, ...offers('c', 4)],
      [a, b, c, ...offers('a', 8)],
      'all 8 machines of 2 regions (b, c) gone: an outage?',
    ],
    [
      'lacks everything',
      whole,
      [a, b],
      'not one row, 12 machines known: an outage, or credentials that see less?',
    ],
    [
      'lacks all that is known and has others',
      whole,
      [
        c,
        offer('c', 'x', { cpu: 8, ram: 8 }),
        offer('c', 'y', { cpu: 9, ram: 9 }),
        offer('c', 'z', { cpu: 7, ram: 7 }),
      ],
      'all 12 machines of Acme gone, and 3 others new: another account, or another list?',
    ],
    [
      'has a family under new names',
      [a, b, ...family('cx'), ...family('cx', 'b'), ...offers('a', 4)],
      [a, b, ...family('cpx'), ...family('cpx', 'b'), ...offers('a', 4)],
      '8 machines cx… gone, and 8 new with the same sizes in the same regions (cx1 → cpx1): one family, same sizes under new names?',
    ],
    [
      'has a region under a new code',
      [a, b, ...family('cx'), ...family('cx', 'b')],
      [a, c, ...family('cx'), ...family('cx', 'c')],
      'all 4 machines of region b gone, and 4 with the same names in c: a new code of the region?',
    ],
    [
      'has most of a region under a new code',
      [a, b, ...family('cx'), ...family('cx', 'b'), offer('b', 'old', { cpu: 3 })],
      [a, c, ...family('cx'), ...family('cx', 'c')],
      'all 5 machines of region b gone, and 4 with the same names in c: a new code of the region?',
    ],
    [
      'lacks a family',
      [a, b, ...family('cx'), ...family('cx', 'b'), ...offers('a', 4)],
      [a, b, ...offers('a', 4)],
      'all 8 machines cx… gone: a family that has ended?',
    ],
    [
      'lacks some machines',
      whole,
      [a, b, ...offers('a', 5), ...offers('b', 2)],
      '5 of 12 machines gone: an incomplete answer?',
    ],
    [
      'has many machines in a new region',
      [a, ...offers('a', 4)],
      [a, c, ...offers('a', 4), ...offers('c', 6)],
      '6 new machines in region c: a new region?',
    ],
    [
      'has many machines of a new family',
      [a, b, ...offers('a', 3)],
      [a, b, ...offers('a', 3), ...family('cx')],
      '4 new machines cx…: a new family?',
    ],
    [
      'has many different new machines',
      [a, b, ...offers('a', 3)],
      [a, b, ...offers('a', 3), ...family('cx'), ...family('x')],
      '8 new machines beside 3 known: a longer list?',
    ],
    [
      'has another unit of memory',
      whole,
      [a, b, ...offers('a', 8, { ram: 4096 }), ...offers('b', 4, { ram: 4096 })],
      'memory of all 12 machines × 1024: a unit?',
    ],
    [
      'states its memory in GB',
      whole,
      [a, b, ...offers('a', 8, { ramUnit: 'Decimal' }), ...offers('b', 4, { ramUnit: 'Decimal' })],
      'memory of all 12 machines in another unit: GB for GiB?',
    ],
    [
      'has fewer rows than announced',
      whole,
      [...whole.slice(0, -2), { kind: 'total', of: 'machines', advertised: 12, fetched: 10 }],
      '10 of 12 announced machines sent; 2 of 12 machines gone: a lost page?',
    ],
    [
      'has unusable rows',
      whole,
      [
        ...whole.slice(0, -4),
        ...['m1', 'm2', 'm3', 'm4'].map((name) => rejected(name, { regionCode: 'b', name })),
      ],
      '4 of 12 rows unusable, for one reason (… cannot be used): a changed format?',
    ],
    ['repeats rows', whole, [...whole, ...offers('a', 8)], '8 rows more than once: a page read twice?'],
    [
      'states all prices of machines and terms in another unit',
      [a, ...offers('a', 4, { monthlyCap: '30' })],
      [a, ...offers('a', 4, { amount: '6', monthlyCap: '3000' })],
      'all 4 prices × 100; 4 prices of terms × 100: a unit?',
    ],
    [
      'has another price list, also for machines that are sold out now',
      [a, b, ...offers('a', 5), ...offers('b', 3)],
      [
        a,
        b,
        ...offers('a', 5, { amount: '0.12' }),
        ...offers('b', 3, { amount: '0.12', excluded: 'sold_out' }),
      ],
      '5 of 8 prices × 2: a price rise?',
    ],
    [
      'states all prices of traffic in another unit',
      [a, ...offers('a', 4), ...traffic('0.01')],
      [a, ...offers('a', 4), ...traffic('10')],
      '3 prices of regions × 1000: a unit?',
    ],
    [
      'has several changes',
      [a, b, ...offers('a', 10), ...offers('b', 10)],
      [a, b, ...offers('a', 10).slice(2), ...offers('b', 10, { amount: '0.07' }).slice(3), offer('a', 'new')],
      '7 of 20 prices × 1.17; 5 of 20 machines gone; 1 new machine beside 20 known: several changes at once?',
    ],
    [
      'lacks plans of databases',
      [a, ...['s', 't', 'u', 'v'].map((name) => databasePlan('a', name)), ...offers('a', 4)],
      [a, databasePlan('a', 's'), ...offers('a', 4)],
      '3 database plans gone: an incomplete answer?',
    ],
    [
      'has one row, which is another',
      [a, offer('a', 'm1')],
      [a, offer('a', 'm1', { amount: '6' })],
      'the only price × 100: a single change?',
      { limits: { smallCount: 0 } },
    ],
    [
      'lacks the only row',
      [a, offer('a', 'm1')],
      [a],
      'not one row, 1 machine known: an outage, or credentials that see less?',
    ],
  ])('that %s says so', async (_, before, after, expected, settings) => {
    expect(await held(before, after, settings)).toBe(expected);
  });
});

describe('a held batch of clusters', () => {
  const keys = (count: number, prefix = 'k') => Array.from({ length: count }, (_, i) => `${prefix}${i}`);
  const heldClusters = async (before: ReturnType<typeof cluster>[], after: ReturnType<typeof cluster>[]) => {
    await scene.catalogue([a, offer('a', 'small')]);
    await scene.organization('org');
    await scene.organization('other');
    await scene.clusters(before);
    expect(await scene.clusters(after)).toMatchObject({ outcome: 'held' });
    return sentence();
  };

  it('that lacks an organization says so', async () => {
    const rest = keys(6).map((key) => cluster(key));
    const gone = keys(3, 'o').map((key) => cluster(key, { organization: 'other' }));
    expect(await heldClusters([...rest, ...gone], rest)).toBe(
      'all 3 clusters of organization other gone: an outage?',
    );
  });

  it('that lacks a region says so', async () => {
    const rest = keys(6).map((key) => cluster(key));
    const gone = keys(3, 'o').map((key) => cluster(key, { region: { code: 'b', name: 'B' } }));
    expect(await heldClusters([...rest, ...gone], rest)).toBe(
      'all 3 clusters of region Acme b gone: an outage?',
    );
  });

  it('that has the same names under other keys says so', async () => {
    const named = (prefix: string) => keys(3, prefix).map((key, i) => cluster(key, { name: `orders ${i}` }));
    expect(await heldClusters(named('k'), named('n'))).toBe(
      '3 clusters gone, and 3 new with the same names (orders 0): rebuilt, or new keys?',
    );
  });

  it('that lacks everything says so', async () => {
    expect(await heldClusters([...keys(4).map((key) => cluster(key))], [])).toBe(
      'not one row, 4 clusters known: an outage, or credentials that see less?',
    );
  });

  it('that lacks some says only that', async () => {
    const all = keys(9).map((key) => cluster(key));
    expect(await heldClusters(all, all.slice(3))).toBe('3 of 9 clusters gone: an incomplete answer?');
  });
});

it('is the same sentence in the list of held batches, in the alert and among the problems', async () => {
  const pattern = await held([a, ...priced(1)], [a, ...priced(100)]);
  const [batch] = await pendingBatches(scene.store.db);
  const guards = batch?.broken.map(({ detail }) => detail).join('; ');
  const facts = await readSourceFacts(scene.store.db, []);
  const problems = findProblems([], facts, scene.now());
  expect(problems.find(({ kind }) => kind === 'held')?.text).toBe(`${pattern} ${guards}`);
  const alerts = await findConditions(scene.store.db, [], DEFAULT_RULES, scene.now());
  expect(alerts.find(({ kind }) => kind === 'batch_held')).toMatchObject({
    summary: `a batch of acme is held for a decision: ${pattern} ${guards}`,
    details: { pattern },
  });
  expect(headline(batch ?? expect.unreachable())).toMatch(`: ${pattern} ${guards}`);
});

it('follows the content of a batch that keeps its number', async () => {
  await held([a, ...priced(1)], [a, ...priced(100)]);
  const [first] = await pendingBatches(scene.store.db);
  // Another batch was stored in between by an approval of single prices: fewer prices differ now.
  await scene.sql`update machines set source_amount = source_amount * 100 where name = 'p0'`;
  await scene.catalogue([a, ...priced(100)]);
  const [second] = await pendingBatches(scene.store.db);
  expect(second).toMatchObject({ id: first?.id, pattern: '3 of 4 prices × 100: a unit?' });
});

it('is found in a batch of many machines', async () => {
  const many = (amount: string) => ['a', 'b', 'c'].flatMap((code) => offers(code, 10_000, { amount }));
  await scene.catalogue([a, b, c, ...many('0.05')]);
  expect(await scene.catalogue([a, b, c, ...many('5')])).toMatchObject({ outcome: 'held' });
  expect(await sentence()).toBe('all 30000 prices × 100: a unit?');
});

it('is given up if a statement fails or is slow, and the limits of the transaction are those of before', async () => {
  await using connection = scene.store.connection();
  const { db } = connection;
  const limit = () => db.execute(sql`select current_setting('statement_timeout') as value`);
  const before = await limit();
  await db.execute(sql`begin`);
  await db.execute(sql`create temporary table seen as select 1 as id`);
  const slow = () => db.execute(sql`select pg_sleep(60)`).then(() => 'slow');
  const failing = () => db.execute(sql`select 1 / 0`).then(() => 'a number');
  expect(await patternOrNone(db, failing)).toBe(
    'its changes could not be counted (division by zero): what do its rows say?',
  );
  expect(await patternOrNone(db, slow, 0.05)).toMatch(/\(canceling statement due to statement timeout\)/);
  expect(await patternOrNone(db, async () => 'all of it')).toBe('all of it');
  expect(await limit()).toEqual(before);
  expect(await db.execute(sql`select id from seen`)).toEqual([{ id: 1 }]);
});
