import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { bookForTerm, type PriceBookEntry } from '../../src/domain/prices/price-book.ts';
import { emptyIndex, updateIndex } from '../../src/market/catalogue-index.ts';
import { nodePrice, nodePriceBy } from '../../src/market/costs/cost.ts';
import type { Filters, Sort } from '../../src/market/filters.ts';
import { entryOf, listPriceOf, ownView, PriceBooks, type PricedIndex } from '../../src/market/price-books.ts';
import { rowsBytes } from '../../src/market/rows.ts';
import { search } from '../../src/market/search.ts';
import { NO_BOOKS } from '../http/readers.ts';
import { runs } from '../support/random.ts';
import { priceBookEntry as entry } from './price-book-entry.ts';
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

const idsOf = ({ view }: PricedIndex, rows: readonly number[]) => rows.map((row) => view.rows.ids[row]);

function pages(priced: PricedIndex, filters: Filters, sort: Sort, limit: number) {
  let { rows, next } = search(priced.view, filters, sort, limit);
  const found = [...idsOf(priced, rows)];
  while (next) {
    expect(rows.length).toBe(limit);
    ({ rows, next } = search(priced.view, filters, sort, limit, next));
    found.push(...idsOf(priced, rows));
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
          const own = worlds.pricedBy(index, bookForTerm(entries, 'on_demand', NOW), sort.by);
          expect(pages(own, filters, sort, limit)).toEqual(wanted);
        },
      ),
      { numRuns: runs(300) },
    );
  });

  it('finds the same after a publication of some regions', () => {
    fc.assert(
      fc.property(
        worlds.world,
        worlds.world,
        fc.subarray(worlds.REGIONS),
        book,
        worlds.filters,
        worlds.sort,
        (first, second, published, entries, filters, sort) => {
          const before = worlds.indexOf(emptyIndex(), first);
          const change = new Map([...second].filter(([region]) => published.includes(region)));
          const index = worlds.indexOf(before, change);
          const ofTerm = bookForTerm(entries, 'on_demand', NOW);
          const { view } = worlds.pricedBy(before, ofTerm, sort.by);
          const after = worlds.pricedBy(index, ofTerm, sort.by, view);
          const wanted = worlds.naive(priced(new Map([...first, ...change]), entries), filters, sort);
          expect(pages(after, filters, sort, 3)).toEqual(wanted.map(({ id }) => id));
        },
      ),
      { numRuns: runs(300) },
    );
  });

  it('has the list price and the entry of each row', () => {
    fc.assert(
      fc.property(worlds.world, book, (world, entries) => {
        const ofTerm = bookForTerm(entries, 'on_demand', NOW);
        const own = worlds.pricedBy(worlds.indexOf(emptyIndex(), world), ofTerm);
        const found = [...own.view.rows.ids].map((id, row) => [id, listPriceOf(own, row), entryOf(own, row)]);
        const wanted = [...world.values()]
          .flat()
          .map(({ id, name, region, provider, price }) => [
            id,
            price,
            ofTerm.entryOf({ id, name, regionId: region, providerId: provider }),
          ]);
        expect(new Map(found.map(([id, ...rest]) => [id, rest]))).toEqual(
          new Map(wanted.map(([id, ...rest]) => [id, rest])),
        );
      }),
    );
  });
});

describe('a view of own prices', () => {
  const index = worlds.indexOf(
    emptyIndex(),
    fc.sample(worlds.world, { numRuns: 1, seed: 1 })[0] ?? new Map(),
  );
  const documents = { get: () => ({ document: undefined, tier: 'memory' as const, asOf: undefined }) };
  const bytes = rowsBytes({ ...index.rows, orders: {} });
  const bookOf = (id: number) => bookForTerm([entry({ id, discount: '10' })], 'on_demand', NOW);

  it('has a book that stays the same until an entry begins or ends', () => {
    let now = NOW;
    const books = new PriceBooks({ documents, now: () => now });
    const day = 86_400_000;
    const entries = [
      entry({ id: 1, to: new Date(NOW + day).toISOString() }),
      entry({ id: 2, from: new Date(NOW + 2 * day).toISOString() }),
    ];
    const idsAt = () => books.book(entries, 'on_demand').entries.map(({ id }) => id);
    const first = books.book(entries, 'on_demand');
    expect(idsAt()).toEqual([1]);
    expect(books.book(entries, 'on_demand')).toBe(first);
    expect(books.book(entries, 'spot')).not.toBe(first);
    expect(books.book([...entries], 'on_demand')).not.toBe(first);
    now = NOW + day;
    expect(idsAt()).toEqual([]);
    now = NOW + 2 * day;
    expect(idsAt()).toEqual([2]);
  });

  it('is made once for one index, term and content of a book', async () => {
    const books = new PriceBooks({ documents });
    const first = await books.priced(index, 'on_demand', bookOf(1), 'price');
    expect(books.priced(index, 'on_demand', bookOf(1), 'price')).toMatchObject({ view: first.view });
    const others = await Promise.all([
      books.priced(index, 'spot', bookOf(1), 'price'),
      books.priced(index, 'on_demand', bookOf(2), 'price'),
      books.priced({ ...index, rows: { ...index.rows } }, 'on_demand', bookOf(1), 'price'),
    ]);
    for (const { view } of others) expect(view).not.toBe(first.view);
  });

  it('gets an order at the first search that needs it, and keeps it', async () => {
    const sizes: number[] = [];
    const books = new PriceBooks({ documents, onSize: (size) => sizes.push(size) });
    const byCpu = () => books.priced(index, 'on_demand', bookOf(1), 'cpu');
    const byPrice = await books.priced(index, 'on_demand', bookOf(1), 'price');
    expect(byPrice.view.rows.orders).toEqual({});
    const { view } = await byCpu();
    expect(Object.keys(view.rows.orders)).toEqual(['cpu']);
    expect(byCpu()).toMatchObject({ view });
    expect(sizes).toEqual([bytes, rowsBytes(view.rows)]);
  });

  it('counts its monthly caps, and its rows by id', async () => {
    const [machines] = fc
      .sample(worlds.machinesOf(1), { numRuns: 20, seed: 1 })
      .filter(({ length }) => length > 1);
    if (!machines) expect.unreachable();
    const cap = { price: '20', source: { amount: '20', currency: 'USD' } };
    const capped = machines.map((machine) => ({ ...machine, terms: { terms: {}, monthly_cap: cap } }));
    const list = worlds.atOnce(updateIndex(emptyIndex(), [worlds.updateOf(1, capped)]));
    const books = new PriceBooks({ documents });
    const { view } = await books.priced(list, 'on_demand', bookOf(1), 'price');
    const { prices, ids, types, regions } = view.rows;
    const [caps] = view.caps;
    if (!caps) expect.unreachable();
    const bytesOf = (...arrays: readonly ArrayBufferView[]) =>
      arrays.reduce((sum, { byteLength }) => sum + byteLength, 0);
    const columns = bytesOf(prices, ids, types, regions, caps.ids, caps.values);
    expect([caps.ids.length, books.bytes]).toEqual([machines.length, columns + 4 * (Math.max(...ids) + 1)]);
  });

  it('gives way to the views that were used after it', async () => {
    const books = new PriceBooks({ documents, memoryLimit: () => 2 * bytes });
    const priced = (id: number) => books.priced(index, 'on_demand', bookOf(id), 'price');
    await priced(1);
    await priced(2);
    await priced(1);
    await priced(3);
    expect(books.bytes).toBe(2 * bytes);
    expect(priced(1)).not.toBeInstanceOf(Promise);
    expect(priced(2)).toBeInstanceOf(Promise);
  });

  it('is refused if it is larger than the memory for all views', async () => {
    const books = new PriceBooks({ documents, memoryLimit: () => bytes - 1 });
    await expect(books.priced(index, 'on_demand', bookOf(1), 'price')).rejects.toThrow(
      'Own prices cannot be searched here: they need more of MEMORY_LIMIT.',
    );
  });

  it('is made in turns of a few hundred prices', () => {
    const names = ['cax', 'cpx'];
    const machine = worlds.machinesOf(1);
    const [like] = fc.sample(machine, { numRuns: 20, seed: 1 }).flat();
    if (!like) expect.unreachable();
    const many = Array.from({ length: 10_000 }, (_, i) => ({
      ...like,
      id: i + 1,
      name: `${names[i % 2]}${i}`,
    }));
    const large = worlds.atOnce(updateIndex(emptyIndex(), [worlds.updateOf(1, many)]));
    const work = ownView(undefined, large, bookOf(1));
    let turns = 0;
    while (!work.next().done) turns += 1;
    expect(turns).toBeGreaterThan(10_000 / 512);
  });

  it('is none without entries', () => {
    expect(NO_BOOKS.entries(undefined)).toEqual([]);
    expect(NO_BOOKS.entries(7)).toEqual([]);
    const book = bookForTerm([], 'on_demand', NOW);
    expect(NO_BOOKS.priced(index, 'on_demand', book, 'price')).toEqual({
      view: index,
      list: index,
      book: undefined,
    });
  });
});
