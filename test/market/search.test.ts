import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { questionOf } from '../../src/features/search/answers.ts';
import {
  type CatalogueIndex,
  emptyIndex,
  indexBytes,
  updateIndex,
} from '../../src/market/catalogue-index.ts';
import type { Filters, Sort } from '../../src/market/filters.ts';
import { search } from '../../src/market/search.ts';
import { runs } from '../support/random.ts';
import * as worlds from './world.ts';

const CHEAPEST: Sort = { by: 'price', descending: false };

const idsOf = (index: CatalogueIndex, rows: readonly number[]) => rows.map((row) => index.rows.ids[row]);

/** Returns all pages, each from the position at the end of the previous one. */
function pages(index: CatalogueIndex, filters: Filters, sort: Sort, limit: number) {
  let { rows, next } = search(index, filters, sort, limit);
  const found = [...idsOf(index, rows)];
  while (next) {
    expect(rows.length).toBe(limit);
    ({ rows, next } = search(index, filters, sort, limit, next));
    found.push(...idsOf(index, rows));
  }
  return found;
}

describe('a search', () => {
  it('finds the same machines as a full scan, in the same order, page by page', () => {
    fc.assert(
      fc.property(
        worlds.world,
        worlds.filters,
        worlds.sort,
        fc.integer({ min: 1, max: 7 }),
        (world, filters, sort, limit) => {
          const index = worlds.indexOf(emptyIndex(), world);
          const wanted = worlds.naive(world, filters, sort).map(({ id }) => id);
          expect(pages(index, filters, sort, limit)).toEqual(wanted);
        },
      ),
      { numRuns: runs(300) },
    );
  });

  it('for a local disk leaves out a machine whose disk is unknown', () => {
    const machines = [null, 0, 80].map((localDisk, i) =>
      worlds.plainMachine({ id: i + 1, price: 0.1, facts: { localDisk } }),
    );
    const index = worlds.indexOf(emptyIndex(), new Map([[1, machines]]));
    expect(pages(index, { minDisk: 80 }, CHEAPEST, 10)).toEqual([3]);
    expect(pages(index, {}, CHEAPEST, 10)).toEqual([1, 2, 3]);
  });

  it('continues behind its place in the order after any publication between two pages', () => {
    const changes = fc.array(
      fc
        .constantFrom(...worlds.REGIONS)
        .chain((id) => worlds.machinesOf(id).map((machines) => ({ id, machines }))),
      { minLength: 1, maxLength: 3 },
    );
    fc.assert(
      fc.property(
        worlds.world,
        changes,
        worlds.filters,
        worlds.sort,
        fc.integer({ min: 1, max: 5 }),
        (world, changed, filters, sort, limit) => {
          const before = worlds.indexOf(emptyIndex(), world);
          const first = search(before, filters, sort, limit);
          const updates = new Map(changed.map(({ id, machines }) => [id, machines]));
          const after = worlds.indexOf(before, updates);
          const now = new Map([...world, ...updates]);
          const all = worlds.naive(now, filters, sort).map(({ id }) => id);
          expect(pages(after, filters, sort, limit)).toEqual(all);
          if (first.next) {
            const { rows } = search(after, filters, sort, limit, first.next);
            const wanted = worlds.naive(now, filters, sort, first.next).slice(0, limit);
            expect(idsOf(after, rows)).toEqual(wanted.map(({ id }) => id));
          }
          // A search of the earlier index finds the earlier machines.
          expect(search(before, filters, sort, limit)).toEqual(first);
        },
      ),
      { numRuns: runs(200) },
    );
  });
});

/** 40,000 machines of 8 groups in 4 regions. The first region is the dearest. One name occurs once. */
function large(): CatalogueIndex {
  const facts = {
    architecture: null,
    generation: null,
    cpuKind: null,
    localDisk: null,
    network: null,
    includedTraffic: null,
    includedIpv4: null,
    orderableUntil: null,
    retiresAt: null,
  };
  const world = new Map(
    [1, 2, 3, 4].map((region) => [
      region,
      Array.from({ length: 10_000 }, (_, i) => ({
        id: region * 100_000 + i,
        name: region === 4 && i === 9_999 ? 'needle' : `${region === 1 ? 'dear' : 'type'}-${i}`,
        cpu: 1 + (i % 4),
        ram: 4,
        ramUnit: 'Binary' as const,
        price: (region === 1 ? 100 : 1) + i / 10_000,
        facts,
        region,
        provider: worlds.providerOf(region),
      })),
    ]),
  );
  return worlds.indexOf(emptyIndex(), world);
}

describe('the cost of a search', () => {
  const index = large();
  const cheapest = (filters: Filters) => search(index, filters, CHEAPEST, 50);

  it.each<[string, Filters, number]>([
    ['only an order', {}, 50],
    // Every second machine matches.
    ['sizes', { minCpu: 2, maxCpu: 3 }, 100],
    ['an unmatched price', { maxPrice: 0.5 }, 0],
    ['a name of one machine', { name: 'NEEDLE' }, 1],
    ['an unmatched name', { name: 'nowhere' }, 0],
    ['a name of most machines', { name: 'type' }, 60],
    ['cheap regions', { regions: [2, 3] }, 120],
    ['a region whose machines are the dearest', { regions: [1] }, 50],
    ['a name of only the dearest', { name: 'dear' }, 50],
    ['a name that is not in the region', { regions: [2], name: 'dear' }, 0],
  ])('is bounded for %s', (_, filters, most) => {
    expect(cheapest(filters).tested).toBeLessThanOrEqual(most);
  });

  it('is as low on a late page as on the first', () => {
    const last = 1 + 9_000 / 10_000;
    const { rows, tested } = search(index, {}, CHEAPEST, 50, { key: last, price: last, id: 200_001 });
    expect([rows.length, tested]).toEqual([50, 50]);
  });

  it('finds the dearest machine too', () => {
    expect(cheapest({ regions: [1] }).rows.map((row) => index.rows.prices[row])).toEqual(
      Array.from({ length: 50 }, (_, i) => 100 + i / 10_000),
    );
  });
});

describe('an index', () => {
  it('has the same version for the same content in any order, and another version for other content', () => {
    fc.assert(
      fc.property(worlds.world, worlds.machinesOf(9), (world, more) => {
        const one = worlds.indexOf(emptyIndex(), world);
        const other = worlds.indexOf(emptyIndex(), new Map([...world].reverse()));
        expect(other.version).toBe(one.version);
        const later = worlds.indexOf(one, new Map([[9, more]]));
        expect(later.version).not.toBe(one.version);
        expect(worlds.indexOf(later, new Map([[9, more]])).version).toBe(later.version);
      }),
      { numRuns: 30 },
    );
  });

  it('yields every few thousand rows while it is built', () => {
    const work = updateIndex(large(), [worlds.updateOf(9, [])]);
    let turns = 0;
    while (!work.next().done) turns += 1;
    expect(turns).toBeGreaterThan(4 * Math.floor(40_000 / 8192));
  });

  it('counts its bytes', () => {
    const index = large();
    const { prices, ids, types, regions: places, orders } = index.rows;
    const held = [prices, ids, types, places, ...Object.values(orders)];
    const bytes = held.reduce((sum, { byteLength }) => sum + byteLength, 0);
    expect(indexBytes(index)).toBeGreaterThanOrEqual(bytes);
  });
});

describe('the identity of a question', () => {
  const identity = (filters: Filters, sort: Sort) => JSON.stringify(questionOf(filters, sort, 'on_demand'));

  it('is that of its filters and order, in any spelling', () => {
    const same = { name: 'a', regions: [1, 2], minCpu: 2, maxCpu: undefined };
    const question = identity({ minCpu: 2, regions: [2, 1, 1], name: 'A' }, CHEAPEST);
    expect(identity(same, CHEAPEST)).toBe(question);
    const others: [Filters, Sort][] = [
      [{ ...same, minCpu: 3 }, CHEAPEST],
      [{ ...same, regions: [1] }, CHEAPEST],
      [{ ...same, providers: [1] }, CHEAPEST],
      [same, { by: 'price', descending: true }],
      [same, { by: 'cpu', descending: false }],
    ];
    for (const [filters, sort] of others) expect(identity(filters, sort)).not.toBe(question);
    expect(JSON.stringify(questionOf(same, CHEAPEST, 'spot'))).not.toBe(question);
  });
});
