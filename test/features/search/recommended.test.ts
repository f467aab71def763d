/** Recommendations with storage, traffic and addresses, compared with the bills of all machines. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { billOf, type Needs } from '../../../src/domain/prices/bill.ts';
import { nodePrice, nodePriceBy } from '../../../src/domain/prices/cost.ts';
import { bookForTerm } from '../../../src/domain/prices/price-book.ts';
import type { StoredRegionPrice } from '../../../src/domain/prices/region-price.ts';
import { recommended } from '../../../src/features/search/recommend.ts';
import { emptyIndex, updateIndex } from '../../../src/snapshot/catalogue/catalogue-index.ts';
import type { Filters } from '../../../src/snapshot/catalogue/filters.ts';
import { ownPrices } from '../../../src/snapshot/catalogue/own-prices.ts';
import { priceBookEntry as entry } from '../../support/price-book-entry.ts';
import * as worlds from './world.ts';

const NOW = Date.parse('2026-06-01T00:00:00Z');
const TERM = 'on_demand';

/** Machines of some regions have monthly caps, and some machines of such a region have none. */
const world = fc
  .tuple(worlds.world, fc.array(fc.option(fc.constantFrom('20', '900', '4000', '15000')), { minLength: 7 }))
  .map(
    ([plain, caps]) =>
      new Map(
        [...plain].map(([region, machines]) => [
          region,
          machines.map((machine) => ({ ...machine, ...capOf(caps[machine.id % caps.length]) })),
        ]),
      ),
  );

function capOf(cap: string | null | undefined): Pick<worlds.Machine, 'terms'> {
  return cap
    ? { terms: { terms: {}, monthly_cap: { price: cap, source: { amount: cap, currency: 'USD' } } } }
    : {};
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
]);

const needs: fc.Arbitrary<Needs> = fc.record({
  hours: fc.constantFrom('1', '100', '730', '2000'),
  storage: fc.constantFrom('0', '50'),
  traffic: fc.constantFrom('1', '30000'),
  ipv4: fc.constantFrom('0', '1'),
});
const filters: fc.Arbitrary<Filters> = worlds.filters.map(({ maxPrice: _, ...others }) => others);

it('has the lowest total of each provider, with caps and own prices', () => {
  fc.assert(
    fc.property(
      world,
      fc.array(prices, { minLength: 5, maxLength: 5 }),
      book,
      needs,
      filters,
      (machines, ofRegions, entries, needed, wanted) => {
        const pricesOf = (region: number) => ofRegions[region - 1] ?? undefined;
        const index = worlds.atOnce(
          updateIndex(
            emptyIndex(),
            [...machines].map(([region, all]) => worlds.updateOf(region, all, 1, pricesOf(region))),
          ),
        );
        const own = bookForTerm(entries, TERM, NOW);
        const bills = worlds.naive(machines, wanted, { by: 'price', descending: false }).map((machine) => {
          const { id, name, region: regionId, provider: providerId } = machine;
          const list = nodePrice(machine.price, machine.terms?.monthly_cap?.price);
          const ownPrice = nodePriceBy(list, own.entryOf({ id, name, regionId, providerId }));
          const { includedTraffic } = machine.facts;
          const billed = { ...ownPrice, includedTraffic, prices: pricesOf(regionId) ?? null };
          return { providerId, ...billOf(billed, needed) };
        });
        const expected = [1, 2].flatMap((provider) => {
          const all = bills.filter(({ providerId }) => providerId === provider);
          const complete = all.filter(({ isComplete }) => isComplete);
          const totals = (complete.length > 0 ? complete : all).map(({ total }) => Number(total));
          return totals.length === 0
            ? []
            : [{ provider, total: Math.min(...totals), isComplete: complete.length > 0 }];
        });
        const question = { term: TERM, needs: needed, own: ownPrices(index, own) } as const;
        const found = recommended(index, wanted, question).map(({ row, bill }) => ({
          provider: index.regions[index.rows.regions[row] as number]?.provider.id,
          total: Number(bill.total),
          isComplete: bill.isComplete,
        }));
        const byProvider = (a: { provider?: number | undefined }, b: { provider?: number | undefined }) =>
          (a.provider ?? 0) - (b.provider ?? 0);
        expect(found.toSorted(byProvider)).toEqual(expected);
      },
    ),
    { numRuns: 300 },
  );
});
