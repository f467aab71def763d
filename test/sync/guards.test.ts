import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { jumpGuard, PRICE_KINDS } from '../../src/sync/catalogue/check-prices.ts';
import { type CatalogueMeasures, catalogueGuards } from '../../src/sync/catalogue/guards.ts';
import { type BrokenGuard, brokenGuards, DEFAULT_GUARD_LIMITS } from '../../src/sync/guards.ts';

const GOOD: CatalogueMeasures = {
  known: 100,
  seen: 100,
  added: 0,
  repriced: 0,
  missing: 0,
  rejected: 0,
  withdrawn: 0,
  reshaped: 0,
  memoryFactor: 1,
  duplicates: 0,
  duplicateTypes: 0,
  setAside: 0,
  knownTerms: 100,
  termsLost: 0,
  plans: 0,
  totals: [],
};
const broken = (batch: Partial<CatalogueMeasures>, limits = {}) =>
  brokenGuards(catalogueGuards({ ...GOOD, ...batch }, { ...DEFAULT_GUARD_LIMITS, ...limits })).map(
    ({ guard }) => guard,
  );

describe('a batch', () => {
  it.each<[string, Partial<CatalogueMeasures>, BrokenGuard['guard'][]]>([
    ['without a change', {}, []],
    ['that loses exactly the share', { missing: 20 }, []],
    ['that loses one machine more', { missing: 21 }, ['removed']],
    ['that loses terms of a fifth of the machines that have some', { termsLost: 20 }, []],
    ['that loses terms of more of them', { termsLost: 21 }, ['removed']],
    ['that doubles the catalogue', { added: 100, seen: 200 }, []],
    ['that more than doubles it', { added: 101, seen: 201 }, ['added']],
    ['that reprices half', { repriced: 50 }, []],
    ['that reprices more than half', { repriced: 51 }, ['repriced']],
    ['with a tenth unusable', { rejected: 10 }, []],
    ['with more than a tenth unusable', { rejected: 11 }, ['rejected']],
    ['with quarantined prices', { rejected: 18, setAside: 8 }, []],
    ['that withdraws as many machines as it may lose', { missing: 10, withdrawn: 10 }, []],
    ['that withdraws one machine more', { missing: 10, withdrawn: 11 }, ['removed']],
    ['that resizes a fifth', { reshaped: 20 }, []],
    ['that resizes more than a fifth', { reshaped: 21, memoryFactor: 1.024 }, ['unit_flip']],
    ['with all announced types', { totals: [{ of: 'types', advertised: 10, fetched: 10 }] }, []],
    [
      'without one of the announced types',
      { totals: [{ of: 'types', advertised: 10, fetched: 9 }] },
      ['incomplete'],
    ],
    [
      'with more types than announced',
      { totals: [{ of: 'types', advertised: 10, fetched: 11 }] },
      ['incomplete'],
    ],
    ['with two rows twice', { duplicates: 4, duplicateTypes: 2, rejected: 4 }, []],
    ['with two types twice in many regions', { duplicates: 40, duplicateTypes: 2, rejected: 40 }, []],
    ['with a page twice', { seen: 120, duplicates: 40, duplicateTypes: 20, rejected: 40 }, ['duplicates']],
    [
      'whose rejected rows are a tenth of the reported ones, not of the known',
      { known: 10, rejected: 10 },
      [],
    ],
    ['that is the first of its source', { known: 0, added: 100_000, seen: 100_000 }, []],
    ['that is the first and has one bad row of two', { known: 0, added: 1, seen: 2, rejected: 1 }, []],
    ['that is the first and has no usable row', { known: 0, seen: 1, rejected: 1 }, ['empty']],
    ['that is the first and empty', { known: 0, seen: 0 }, ['empty']],
    ['that is the first and has plans alone', { known: 0, seen: 0, plans: 1 }, []],
    [
      'with plans alone, and a tenth of its rows unusable',
      { known: 0, seen: 10, rejected: 10, plans: 90 },
      [],
    ],
    ['with plans alone, and more of them', { known: 0, seen: 11, rejected: 11, plans: 90 }, ['rejected']],
    ['with plans and no usable machine', { seen: 100, rejected: 100, plans: 900 }, ['empty', 'rejected']],
    ['with plans while one machine is known', { known: 1, seen: 0, missing: 1, plans: 90 }, ['empty']],
    ['that is empty while one machine is known', { known: 1, seen: 0, missing: 1 }, ['empty']],
    ['that is empty', { seen: 0, missing: 100 }, ['empty', 'removed']],
    ['with rejected rows only', { seen: 100, rejected: 100 }, ['empty', 'rejected']],
    [
      'that breaks all limits',
      { missing: 50, added: 150, repriced: 60, rejected: 50 },
      ['removed', 'added', 'repriced', 'rejected'],
    ],
  ])('%s breaks the expected guards', (_, batch, guards) => {
    expect(broken(batch)).toEqual(guards);
  });

  it.each<[string, { rows: number; types: number }, boolean]>([
    ['a tenth of the prices', { rows: 10, types: 10 }, false],
    ['more than a tenth of the prices', { rows: 11, types: 11 }, true],
    ['many prices of two types', { rows: 40, types: 2 }, false],
    ['many prices of three types', { rows: 40, types: 3 }, true],
  ])('with %s beyond the factor is held or not, for any kind of price', (_, found, isHeld) => {
    for (const kind of PRICE_KINDS) {
      const guard = jumpGuard(kind, { ...found, ratio: 6, stated: 100 }, DEFAULT_GUARD_LIMITS);
      expect(brokenGuards([guard]).map((broke) => broke.guard)).toEqual(isHeld ? ['price_ratio'] : []);
    }
  });

  it.each(['missing', 'added', 'repriced', 'rejected'] as const)(
    'may always have two %s rows, however few are known',
    (count) => {
      const guard = { missing: 'removed', added: 'added', repriced: 'repriced', rejected: 'rejected' }[count];
      const few = { known: 1, seen: 3, [count]: 2 };
      expect(broken(few)).toEqual([]);
      expect(broken(few, { smallCount: 1 })).toEqual([guard]);
      expect(broken({ ...few, seen: 4, [count]: 3 })).toEqual([guard]);
      expect(broken({ known: 1000, seen: 1000, [count]: 0 }, { smallCount: 0 })).toEqual([]);
    },
  );

  it('states the finding, the limit and the consequence', () => {
    const found = brokenGuards(catalogueGuards({ ...GOOD, missing: 30 }, DEFAULT_GUARD_LIMITS));
    expect(found).toEqual([
      {
        guard: 'removed',
        found: 0.3,
        limit: 0.2,
        detail: '30 of 100 known rows are not reported any more (30 %, limit 20 %)',
      },
    ]);
    const jumps = { rows: 12, types: 12, ratio: 60.04, stated: 100 };
    expect(brokenGuards([jumpGuard('machine', jumps, DEFAULT_GUARD_LIMITS)])).toEqual([
      {
        guard: 'price_ratio',
        found: 60.04,
        limit: 5,
        detail: '12 of 100 rows would change the price of a machine by more than a factor of 5, one by 60.0',
      },
    ]);
  });

  it('is within a share exactly at the limit, for any binary fraction', () => {
    const percents = fc.integer({ min: 1, max: 99 });
    fc.assert(
      fc.property(percents, fc.integer({ min: 1, max: 1000 }), (percent, hundreds) => {
        const limits = { removedShare: Number(`0.${String(percent).padStart(2, '0')}`), smallCount: 0 };
        const batch = { known: 100 * hundreds, seen: 100 * hundreds, missing: percent * hundreds };
        expect(broken(batch, limits)).toEqual([]);
        expect(broken({ ...batch, missing: batch.missing + 1 }, limits)).toEqual(['removed']);
      }),
    );
  });
});
