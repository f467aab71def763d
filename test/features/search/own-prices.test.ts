import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { bookForTerm, type PriceBookEntry } from '../../../src/domain/prices/price-book.ts';
import { type CatalogueIndex, emptyIndex } from '../../../src/market/catalogue-index.ts';
import { nodePrice, nodePriceBy } from '../../../src/market/costs/cost.ts';
import type { Filters, Sort } from '../../../src/market/filters.ts';
import { type OwnPrices, ownPrices } from '../../../src/market/own-prices.ts';
import { searchOwn } from '../../../src/market/own-search.ts';
import { priceBooks } from '../../../src/market/price-books.ts';
import { NO_BOOKS } from '../../http/readers.ts';
import { priceBookEntry as entry } from '../../support/price-book-entry.ts';
import * as worlds from './world.ts';

const NOW = Date.parse('2026-06-01T00:00:00Z');

const maybe = <T>(...values: readonly T[]) => fc.option(fc.constantFrom(...values), { nil: undefined });
const value = fc.oneof(
  fc
    .constantFrom('10', '12.5', '33.3333', '50', '99.9999', '100')
    .map((discount) => ({ discount, price: undefined })),
  fc.constantFrom('0', '0.1', '0.15', '0.3', '5').map((price) => ({ discount: undefined, price })),
);
/** A book in which no two entries have one selector. */
const book = fc
  .uniqueArray(
    fc
      .record({
        machineId: maybe(100, 107, 204, 301, 408, 505),
        family: maybe('a', 'A', 'b', 'b.la', 'C5', 'x\n', 'aaa'),
        regionId: maybe(1, 2, 4, 5),
        providerId: maybe(1, 2),
        value,
      })
      .map(({ value: { discount, price }, machineId, ...selector }) =>
        machineId === undefined
          ? { ...selector, machineId, discount: discount ?? '20', price: undefined }
          : { machineId, discount, price, family: undefined, regionId: undefined, providerId: undefined },
      ),
    {
      selector: ({ machineId, family, regionId, providerId }) =>
        JSON.stringify([machineId ?? 0, family ?? '', regionId ?? 0, providerId ?? 0]),
      minLength: 1,
      maxLength: 8,
    },
  )
  .map((all) => all.map((each, i) => entry({ ...each, id: i + 1 })));

/** The same machines with their own prices. */
function priced(world: worlds.World, entries: readonly PriceBookEntry[]): worlds.World {
  const own = bookForTerm(entries, 'on_demand', NOW);
  const priceOf = ({ id, name, region, provider, price }: worlds.Machine) => {
    const found = own.entryOf({ id, name, regionId: region, providerId: provider });
    return found ? Number(nodePriceBy(nodePrice(price, null), found).price) : price;
  };
  return new Map(
    [...world].map(([region, machines]) => [
      region,
      machines.map((machine) => ({ ...machine, price: priceOf(machine) })),
    ]),
  );
}

const idsOf = (index: CatalogueIndex, rows: readonly number[]) => rows.map((row) => index.rows.ids[row]);
const ownOf = (index: CatalogueIndex, entries: readonly PriceBookEntry[]): OwnPrices =>
  ownPrices(index, bookForTerm(entries, 'on_demand', NOW)) ?? expect.unreachable();

function pages(index: CatalogueIndex, own: OwnPrices, filters: Filters, sort: Sort, limit: number) {
  let { rows, next } = searchOwn(index, own, filters, sort, limit);
  const found = [...idsOf(index, rows)];
  while (next) {
    expect(rows.length).toBe(limit);
    ({ rows, next } = searchOwn(index, own, filters, sort, limit, next));
    found.push(...idsOf(index, rows));
  }
  return found;
}

describe('a search by own prices', () => {
  it('finds the same machines as a full scan of the own prices, in the same order, page by page', () => {
    fc.assert(
      fc.property(
        worlds.world,
        book,
        worlds.filters,
        worlds.sort,
        fc.integer({ min: 1, max: 7 }),
        (world, entries, filters, sort, limit) => {
          const index = worlds.indexOf(emptyIndex(), world);
          const wanted = worlds.naive(priced(world, entries), filters, sort).map(({ id }) => id);
          expect(pages(index, ownOf(index, entries), filters, sort, limit)).toEqual(wanted);
        },
      ),
      { numRuns: 300 },
    );
  });
});

describe('prepared prices', () => {
  const index = worlds.indexOf(
    emptyIndex(),
    fc.sample(worlds.world, { numRuns: 1, seed: 1 })[0] ?? new Map(),
  );

  it('are kept for one index, book and term, until an entry begins or ends', () => {
    let now = NOW;
    const books = priceBooks(
      { get: () => ({ document: undefined, tier: 'memory', asOf: undefined }) },
      () => now,
    );
    const day = 86_400_000;
    const entries = [
      entry({ id: 1, to: new Date(NOW + day).toISOString() }),
      entry({ id: 2, from: new Date(NOW + 2 * day).toISOString() }),
    ];
    const first = books.own(index, entries, 'on_demand');
    expect(first?.key).toBe('1');
    expect(books.own(index, entries, 'on_demand')).toBe(first);
    expect(books.own(index, entries, 'spot')).not.toBe(first);
    expect(books.own(index, [...entries], 'on_demand')).not.toBe(first);
    expect(books.own({ ...index, rows: { ...index.rows } }, entries, 'on_demand')).not.toBe(first);
    now = NOW + day;
    expect(books.own(index, entries, 'on_demand')).toBeUndefined();
    now = NOW + 2 * day;
    expect(books.own(index, entries, 'on_demand')?.key).toBe('2');
  });

  it('are none without an organization, and without entries', () => {
    expect(NO_BOOKS.entries(undefined)).toEqual([]);
    expect(NO_BOOKS.entries(7)).toEqual([]);
    expect(NO_BOOKS.own(index, [], 'on_demand')).toBeUndefined();
  });
});
