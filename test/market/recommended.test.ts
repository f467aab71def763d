/** Recommendations compared with the bills of all machines. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { bookForTerm } from '../../src/domain/prices/price-book.ts';
import type { StoredRegionPrice } from '../../src/domain/prices/region-price.ts';
import type { StoredTerms } from '../../src/domain/prices/term.ts';
import { emptyIndex, updateIndex } from '../../src/market/catalogue-index.ts';
import { billOf, type Needs } from '../../src/market/costs/bill.ts';
import { nodePrice, nodePriceBy } from '../../src/market/costs/cost.ts';
import { ofTerm } from '../../src/market/machines.ts';
import { recommended } from '../../src/market/recommend.ts';
import { runs } from '../support/random.ts';
import { priceBookEntry as entry } from './price-book-entry.ts';
import * as worlds from './world.ts';

const NOW = Date.parse('2026-06-01T00:00:00Z');
const SOURCE = { price: { amount: '1', per: 'hour', currency: 'USD' } } as const;

/** Machines with and without monthly caps, in one region too. Some have a price at the term `spot`. */
const world = fc
  .tuple(
    worlds.world,
    fc.array(fc.option(fc.constantFrom('20', '900', '4000', '15000')), { minLength: 7 }),
    fc.array(fc.option(fc.constantFrom('0.05', '0.2', '0.31')), { minLength: 5 }),
  )
  .map(
    ([plain, caps, spots]) =>
      new Map(
        [...plain].map(([region, machines]) => [
          region,
          machines.map((machine) => ({
            ...machine,
            terms: termsOf(caps[machine.id % caps.length], spots[machine.id % spots.length]),
          })),
        ]),
      ),
  );

function termsOf(cap: string | null | undefined, spot: string | null | undefined): StoredTerms | null {
  if (!cap && !spot) return null;
  return {
    terms: spot ? { spot: { price: spot, upfront: null, source: SOURCE } } : {},
    ...(cap && { monthly_cap: { price: cap, source: { amount: cap, currency: 'USD' } } }),
  };
}

const amount = fc.constantFrom('0.00001', '0.002', '0.5');
const price = (item: StoredRegionPrice['item']) =>
  amount.map((each): StoredRegionPrice => {
    const tiers = [{ from: '0', price: each }];
    const source = { tiers: [{ from: '0', amount: each }], currency: 'USD', per: undefined };
    return { item, name: item, isDefault: true, unit: item === 'ipv4' ? 'address' : 'GB', tiers, source };
  });
const prices = fc.option(
  fc
    .subarray(['block_storage', 'traffic_out', 'ipv4'] as const)
    .chain((items) => fc.tuple(...items.map(price))),
);

const book = fc.subarray([
  entry({ id: 1, discount: '30' }),
  entry({ id: 2, regionId: 2, discount: '60' }),
  entry({ id: 3, family: 'b', discount: '95' }),
  entry({ id: 4, machineId: 107, price: '0.05' }),
  entry({ id: 5, machineId: 400, price: '0.9' }),
  entry({ id: 6, machineId: 200, discount: '50' }),
]);

const needs: fc.Arbitrary<Needs> = fc.oneof(
  fc.record({
    hours: fc.constantFrom('0.01', '1', '100', '730', '1459.99', '2000'),
    storage: fc.constantFrom('0', '50'),
    traffic: fc.constantFrom('0', '1', '30000'),
    ipv4: fc.constantFrom('0', '1', '3'),
  }),
  fc.constantFrom('0.01', '100', '730', '2000').map((hours) => {
    return { hours, storage: '0', traffic: '0', ipv4: '0' };
  }),
);

const question = fc.record({
  world,
  ofRegions: fc.array(prices, { minLength: 5, maxLength: 5 }),
  entries: fc.oneof(fc.constant([]), book),
  needed: needs,
  filters: worlds.filters.map(({ maxPrice: _, ...others }) => others),
  term: fc.constantFrom('on_demand', 'on_demand', 'spot'),
});

it('names the machine of each provider with the lowest total, with and without caps and own prices', () => {
  fc.assert(
    fc.property(question, ({ world: machines, ofRegions, entries, needed, filters, term }) => {
      const pricesOf = (region: number) => ofRegions[region - 1] ?? undefined;
      const index = worlds.atOnce(
        updateIndex(
          emptyIndex(),
          [...machines].map(([region, all]) => worlds.updateOf(region, all, 1, pricesOf(region))),
        ),
      );
      const book = bookForTerm(entries, term, NOW);
      const bills = worlds.naive(machines, filters, { by: 'price', descending: false }).flatMap((machine) => {
        const { id, name, region: regionId, provider: providerId, terms, facts } = machine;
        const spot = terms?.terms.spot?.price;
        if (term === 'spot' && spot === undefined) return [];
        const list =
          term === 'spot' && spot !== undefined
            ? nodePrice(spot, null)
            : nodePrice(machine.price, terms?.monthly_cap?.price);
        const own = nodePriceBy(list, book.entryOf({ id, name, regionId, providerId }));
        const billed = {
          ...own,
          includedTraffic: facts.includedTraffic,
          includedIpv4: facts.includedIpv4,
          prices: pricesOf(regionId) ?? null,
        };
        return { id, providerId, price: Number(own.price), ...billOf(billed, needed) };
      });
      bills.sort(
        (a, b) =>
          Number(b.isComplete) - Number(a.isComplete) ||
          Number(a.known) - Number(b.known) ||
          a.price - b.price ||
          a.id - b.id,
      );
      const wanted = bills.filter(
        ({ providerId }, i) => bills.findIndex((other) => other.providerId === providerId) === i,
      );
      const view = term === 'spot' ? ofTerm(index, term) : index;
      const priced = worlds.pricedBy(view, book);
      const found = recommended(priced, filters, needed);
      expect(found.map(({ row, bill }) => [priced.view.rows.ids[row], bill.total, bill.known])).toEqual(
        wanted.map(({ id, total, known }) => [id, total, known]),
      );
    }),
    { numRuns: runs(1000) },
  );
});

it('compares costs that are equal in decimals, but not in doubles', () => {
  const machines = [
    // 0.07 × 43,800 minutes is 3066.0000000000005 in doubles.
    worlds.plainMachine({ id: 1, price: 0.07 }),
    worlds.plainMachine({ id: 2, price: 0.08, terms: termsOf('3066', null) }),
  ];
  const index = worlds.indexOf(emptyIndex(), new Map([[1, machines]]));
  const priced = worlds.pricedBy(index, bookForTerm([], 'on_demand', NOW));
  const needed = { hours: '730', storage: '0', traffic: '0', ipv4: '0' };
  const [best] = recommended(priced, {}, needed);
  expect([best?.bill.total, best && index.rows.ids[best.row]]).toEqual(['3066', 1]);
});
