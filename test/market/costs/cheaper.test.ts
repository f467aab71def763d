/** The one rule for a cheaper machine, against brute force, and where candidates come from. */
import Big from 'big.js';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { PriceBookEntry } from '../../../src/domain/prices/price-book.ts';
import { emptyIndex } from '../../../src/market/catalogue-index.ts';
import {
  BEST,
  cheaperMachines,
  MATCHES,
  type Match,
  rank,
  type WantedSaving,
} from '../../../src/market/costs/cheaper.ts';
import { nodePriceBy } from '../../../src/market/costs/cost.ts';
import type { StoredMachine } from '../../../src/market/costs/inputs.ts';
import { bookFor, NOW, priceOf } from '../../../src/market/costs/prices.ts';
import { candidatesOfIndex } from '../../../src/market/costs/savings.ts';
import { GIGABYTE } from '../../../src/market/dictionary.ts';
import { ownView } from '../../../src/market/price-books.ts';
import { runs } from '../../support/random.ts';
import { priceBookEntry } from '../price-book-entry.ts';
import { storedMachine } from '../stored-machine.ts';
import { atOnce, indexOf, type Machine, providerOf, world } from '../world.ts';

const Wide = Big();
Wide.DP = 60;
Wide.RM = Wide.roundHalfEven;

const AT = Date.parse('2026-06-01T00:00:00Z');

/** What the first of these machines costs two nodes less with each other one. */
function cheaperThanFirst(
  machines: readonly StoredMachine[],
  entries: readonly PriceBookEntry[] = [],
  wanted: WantedSaving = { match: 'kind', limit: 10, least: 0n },
) {
  const book = bookFor(entries, NOW, AT);
  const priced = machines.flatMap((machine) => {
    const { price } = priceOf(machine, 'on_demand', book);
    return price ? [{ ...machine, node: price }] : [];
  });
  const [than] = priced;
  if (!than || than.id !== machines[0]?.id) return undefined;
  return cheaperMachines(than, 2, rank(priced), wanted).map(({ candidate, saving }) => [
    candidate.id,
    saving,
  ]);
}

describe('a cheaper machine', () => {
  it('has at least the same size, and the saving counts all nodes', () => {
    expect(
      cheaperThanFirst([
        storedMachine({ id: 1 }),
        storedMachine({ id: 2, price: '0.0008' }),
        storedMachine({ id: 3, price: '0.0009' }),
        storedMachine({ id: 5, price: '0.0001', cpu: 1 }),
        storedMachine({ id: 6, price: '0.0001', bytes: 3.9e9 }),
      ]),
      // 0.0002 × 43,800 minutes × 2 nodes.
    ).toEqual([
      [2, 1_752_000_000n],
      [3, 876_000_000n],
    ]);
  });

  it('has no other known architecture and no other kind of CPU, unless the size alone must match', () => {
    const used = storedMachine({ id: 1, architecture: 'x86_64', cpuKind: 'dedicated' });
    const others = [
      storedMachine({ id: 2, price: '0.0005', architecture: 'arm64' }),
      storedMachine({ id: 3, price: '0.0006', cpuKind: 'shared' }),
      storedMachine({ id: 4, price: '0.0007' }),
    ];
    const ids = (match: Match) =>
      cheaperThanFirst([used, ...others], [], { match, limit: 10, least: 0n })?.map(([id]) => id);
    expect(ids('kind')).toEqual([4]);
    expect(ids('size')).toEqual([2, 3, 4]);
  });

  it('follows the own prices and the monthly cap', () => {
    const machines = [storedMachine({ id: 1 }), storedMachine({ id: 2, price: '0.0012' })];
    expect(cheaperThanFirst(machines)).toEqual([]);
    expect(cheaperThanFirst(machines, [priceBookEntry({ machineId: 2, discount: '50' })])).toEqual([
      [2, 3_504_000_000n],
    ]);
    const capped = storedMachine({ id: 2, price: '0.0012', monthlyCap: '20' });
    expect(cheaperThanFirst([storedMachine({ id: 1 }), capped])).toEqual([[2, 4_760_000_000n]]);
  });

  it('is unknown for a machine without a price', () => {
    expect(
      cheaperThanFirst([storedMachine({ id: 1, price: null }), storedMachine({ id: 2 })]),
    ).toBeUndefined();
  });

  it('is the cheapest one if one is wanted', () => {
    const machines = [1, 2, 3, 4].map((id) => storedMachine({ id, price: `0.00${5 - id}` }));
    expect(cheaperThanFirst(machines, [], BEST)?.map(([id]) => id)).toEqual([4]);
  });
});

const facts = {
  architecture: fc.constantFrom(null, 'x86_64', 'arm64'),
  cpuKind: fc.constantFrom(null, 'shared', 'dedicated'),
};
const candidate = fc.record({
  cpu: fc.integer({ min: 1, max: 3 }),
  bytes: fc.integer({ min: 1, max: 3 }).map((gigabytes) => gigabytes * 1e9),
  ...facts,
  node: fc.record({
    price: fc.integer({ min: 1, max: 400 }).map((units) => new Wide(units).times('1e-6').toFixed()),
    monthlyCap: fc.option(
      fc.integer({ min: 1, max: 1500 }).map((cents) => new Wide(cents).div(100).toFixed()),
    ),
  }),
});

/** What a month of one node costs. */
const monthOf = ({ price, monthlyCap }: { readonly price: string; readonly monthlyCap: string | null }) => {
  const full = new Wide(price).times(730 * 60);
  return monthlyCap !== null && full.gt(monthlyCap) ? new Wide(monthlyCap) : full;
};

it('a cheaper machine is each one that fits and costs less, the largest saving first', () => {
  const wanted = fc.record({
    match: fc.constantFrom(...MATCHES),
    limit: fc.integer({ min: 1, max: 12 }),
    least: fc.integer({ min: 0, max: 40 }).map((units) => BigInt(units) * 10n ** 8n),
  });
  const nodes = fc.integer({ min: 0, max: 20 });
  fc.assert(
    fc.property(fc.array(candidate, { minLength: 1, maxLength: 12 }), nodes, wanted, (all, count, of) => {
      const machines = all.map((each, id) => ({ ...each, id }));
      const [than] = machines;
      if (!than) throw new Error('unreachable: there is one machine');
      const isSame = (a: string | null, b: string | null) => a === null || b === null || a === b;
      const atAll = (node: (typeof than)['node']) => monthOf(node).times(count).round(8, Wide.roundHalfEven);
      const brute = machines
        .filter(
          (each) =>
            each.cpu >= than.cpu &&
            each.bytes >= than.bytes &&
            (of.match === 'size' ||
              (isSame(each.architecture, than.architecture) && isSame(each.cpuKind, than.cpuKind))),
        )
        .map((each) => ({ id: each.id, saving: atAll(than.node).minus(atAll(each.node)).times(1e8) }))
        .filter(({ saving }) => saving.gt(0) && saving.gte(of.least.toString()))
        .sort((a, b) => b.saving.cmp(a.saving) || a.id - b.id)
        .slice(0, of.limit);
      const found = cheaperMachines(than, count, rank(machines), of);
      expect(found.map(({ candidate: { id }, saving }) => [id, saving.toString()])).toEqual(
        brute.map(({ id, saving }) => [id, saving.toFixed()]),
      );
    }),
    { numRuns: runs(500) },
  );
});

const priceBook = fc.array(
  fc.record({
    providerId: fc.option(fc.constantFrom(1, 2), { nil: undefined }),
    discount: fc.integer({ min: 1, max: 99 }).map(String),
  }),
  { maxLength: 1 },
);

it('the index gives all machines that a list of cheaper ones needs, with own prices', () => {
  const machineOf = ({ id, name, cpu, ram, ramUnit, facts: known, price, region, terms }: Machine) =>
    storedMachine({
      ...known,
      ...{ id, name, cpu, ram, ramUnit, bytes: ram * GIGABYTE[ramUnit], price: String(price) },
      ...{ regionId: region, providerId: providerOf(region) },
      monthlyCap: terms?.monthly_cap?.price ?? null,
    });
  /** Every third machine costs at most some thousands a month. */
  const withCap = (machine: Machine): Machine => {
    const price = String(((machine.id % 9) + 1) * 1500);
    const source = { amount: price, currency: 'USD' };
    return machine.id % 3 === 0
      ? { ...machine, terms: { terms: {}, monthly_cap: { price, source } } }
      : machine;
  };
  const match = fc.constantFrom(...MATCHES);
  fc.assert(
    fc.property(world, priceBook, match, fc.nat(), (uncapped, given, how, chosen) => {
      const regions = new Map([...uncapped].map(([id, machines]) => [id, machines.map(withCap)]));
      const book = bookFor(
        given.map((each, id) => priceBookEntry({ id, ...each })),
        NOW,
        AT,
      );
      const all = [...regions.values()]
        .flat()
        .filter(({ soldOut }) => !soldOut)
        .map((each) => {
          const machine = machineOf(each);
          const priced = priceOf(machine, 'on_demand', book);
          return { ...machine, priced, node: priced.price ?? expect.unreachable() };
        });
      const than = all[chosen % Math.max(1, all.length)];
      if (!than) return;
      const most = 5;
      const question = { term: 'on_demand', book, match: how, most } as const;
      const list = indexOf(emptyIndex(), regions);
      const view = book.entries.length === 0 ? list : atOnce(ownView(undefined, list, book));
      const found = candidatesOfIndex({ view, list }, than, question);
      const wanted = { match: how, limit: most - 1, least: 0n };
      const cheaper = (ranked: Parameters<typeof cheaperMachines>[2]) =>
        cheaperMachines(than, 3, ranked, wanted).map(({ candidate: { id } }) => id);
      const ofProvider = all.filter(({ providerId }) => providerId === than.providerId);
      expect(cheaper(found.anywhere)).toEqual(cheaper(rank(all)));
      expect(cheaper(found.sameProvider)).toEqual(cheaper(rank(ofProvider)));
    }),
    { numRuns: runs(200) },
  );
});

it('a discount lowers the monthly cap too, and a fixed price has none', () => {
  const list = { price: '0.001', monthlyCap: '30' };
  expect(nodePriceBy(list, priceBookEntry({ discount: '10' }))).toEqual({
    price: '0.0009',
    monthlyCap: '27',
  });
  expect(nodePriceBy(list, priceBookEntry({ price: '0.0005' }))).toEqual({
    price: '0.0005',
    monthlyCap: null,
  });
  expect(nodePriceBy(null, priceBookEntry({ discount: '10' }))).toBeNull();
  expect(nodePriceBy(list, undefined)).toEqual(list);
});
