import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { percentOff } from '../../../src/domain/prices/price.ts';
import {
  bookForTerm,
  nextChange,
  overlap,
  type PriceBookEntry,
  type SelectedMachine,
} from '../../../src/domain/prices/price-book.ts';
import { type PriceTerm, TERMS } from '../../../src/domain/prices/term.ts';
import { nodePrice, nodePriceBy } from '../../../src/market/costs/cost.ts';
import { priceBookEntry as entry } from '../../market/price-book-entry.ts';
import { runs } from '../../support/random.ts';

const JANUARY = '2026-01-01T00:00:00Z';
const at = (day: number) => Date.parse(JANUARY) + day * 86_400_000;
const day = (number: number) => new Date(at(number)).toISOString();

const machine: SelectedMachine = { id: 7, name: 'm5.large', regionId: 3, providerId: 5 };

const winner = (entries: readonly PriceBookEntry[], term: PriceTerm = 'on_demand', time = at(1)) =>
  bookForTerm(entries, term, time).entryOf(machine)?.id;

const maybe = <T>(values: readonly T[]) => fc.option(fc.constantFrom(...values), { nil: undefined });
const TERMS_OF_ALL = ['on_demand', ...TERMS] as const;
const FAMILIES = ['m', 'm5', 'm5.', 'm5.large', 'c', 'c6'];

const anyEntry = fc
  .record({
    machineId: maybe([1, 2]),
    family: maybe(FAMILIES),
    regionId: maybe([1, 2, 3]),
    providerId: maybe([1, 2]),
    term: maybe(TERMS_OF_ALL),
    begin: fc.integer({ min: 0, max: 8 }),
    days: fc.option(fc.integer({ min: 1, max: 6 }), { nil: undefined }),
  })
  .map(({ begin, days, ...selector }) =>
    entry({ ...selector, from: day(begin), to: days === undefined ? undefined : day(begin + days) }),
  );

/** A book as it can be stored: without overlapping entries of one selector. */
const anyBook = fc.array(anyEntry, { maxLength: 30 }).map((all) => {
  const kept: PriceBookEntry[] = [];
  for (const each of all)
    if (!overlap([...kept, each])) kept.push({ ...each, id: kept.length + 1, discount: '10' });
  return kept;
});

const anyMachine = fc
  .record({
    id: fc.integer({ min: 1, max: 3 }),
    name: fc.constantFrom('m5.large', 'm5.xlarge', 'm6i', 'c6.large', 'm', 'x1'),
    regionId: fc.integer({ min: 1, max: 3 }),
  })
  .map((found) => ({ ...found, providerId: found.regionId === 3 ? 2 : 1 }));

/** The rules as the decision states them, one after the other. */
function naive(book: readonly PriceBookEntry[], of: SelectedMachine, term: PriceTerm, time: number) {
  let fitting = book.filter(
    (each) =>
      (each.machineId === undefined || each.machineId === of.id) &&
      (each.family === undefined || of.name.startsWith(each.family)) &&
      (each.regionId === undefined || each.regionId === of.regionId) &&
      (each.providerId === undefined || each.providerId === of.providerId) &&
      (each.term === undefined || each.term === term) &&
      new Date(each.from).getTime() <= time &&
      (each.to === undefined || time < new Date(each.to).getTime()),
  );
  const prefer = (isPreferred: (each: PriceBookEntry) => boolean) => {
    const preferred = fitting.filter(isPreferred);
    if (preferred.length > 0) fitting = preferred;
  };
  prefer(({ machineId }) => machineId !== undefined);
  const longest = Math.max(...fitting.map(({ family }) => family?.length ?? 0));
  prefer(({ family }) => (family?.length ?? 0) === longest);
  prefer(({ regionId }) => regionId !== undefined);
  prefer(({ providerId }) => providerId !== undefined);
  prefer((each) => each.term !== undefined);
  expect(fitting.length).toBeLessThanOrEqual(1);
  return fitting[0];
}

describe('the entry that wins', () => {
  it('is the naive one for every book, machine, term and time', () => {
    fc.assert(
      fc.property(
        anyBook,
        fc.array(anyMachine, { minLength: 1, maxLength: 5 }),
        fc.constantFrom(...TERMS_OF_ALL),
        fc.integer({ min: -1, max: 15 }),
        (book, machines, term, time) => {
          const compiled = bookForTerm(book, term, at(time));
          for (const each of machines)
            expect(compiled.entryOf(each)).toEqual(naive(book, each, term, at(time)));
        },
      ),
      { numRuns: runs(300) },
    );
  });

  it('is of the machine, then of the longest family, the region, the provider, and all', () => {
    const entries = [
      entry({ id: 1 }),
      entry({ id: 2, providerId: 5 }),
      entry({ id: 3, regionId: 3 }),
      entry({ id: 4, family: 'm' }),
      entry({ id: 5, family: 'm5.' }),
      entry({ id: 6, machineId: 7 }),
    ];
    expect(entries.map((_, i) => winner(entries.slice(0, i + 1)))).toEqual([1, 2, 3, 4, 5, 6]);
  });

  it('names the term before one for every term, and only then', () => {
    const entries = [
      entry({ id: 1, providerId: 5 }),
      entry({ id: 2, providerId: 5, term: 'spot' }),
      entry({ id: 3, term: 'reserved_1y' }),
    ];
    expect(winner(entries, 'spot')).toBe(2);
    expect(winner(entries, 'on_demand')).toBe(1);
    expect(winner(entries, 'reserved_1y')).toBe(1);
  });

  it('applies from its beginning to before its end', () => {
    const entries = [entry({ id: 1, from: day(1), to: day(2) }), entry({ id: 2, from: day(2) })];
    expect([at(1) - 1, at(1), at(2) - 1, at(2)].map((time) => winner(entries, 'spot', time))).toEqual([
      undefined,
      1,
      1,
      2,
    ]);
    expect(nextChange(entries, at(0))).toBe(at(1));
    expect(nextChange(entries, at(1))).toBe(at(2));
    expect(nextChange(entries, at(2))).toBeUndefined();
  });
});

describe('own prices', () => {
  const priceOf = (given: Partial<PriceBookEntry>, list: string) => {
    const found = bookForTerm([entry(given)], 'spot', at(1)).entryOf(machine);
    return found && nodePriceBy(nodePrice(list, null), found).price;
  };

  it('are the list price without the discount, or the fixed price', () => {
    expect(priceOf({ discount: '12.5' }, '0.0016')).toBe('0.0014');
    expect(priceOf({ discount: '100' }, '0.0016')).toBe('0');
    expect(priceOf({ machineId: 7, discount: undefined, price: '0.003' }, '0.0016')).toBe('0.003');
    expect(priceOf({ providerId: 6 }, '0.0016')).toBeUndefined();
  });

  it('are exact to 15 places, rounded half to even', () => {
    const amount = fc.bigInt({ min: 0n, max: 10n ** 24n });
    fc.assert(
      fc.property(amount, fc.bigInt({ min: 0n, max: 1_000_000n }), (atoms, percent) => {
        const text = (units: bigint, places: number) => {
          const digits = units.toString().padStart(places + 1, '0');
          return `${digits.slice(0, -places)}.${digits.slice(-places)}`;
        };
        const scaled = atoms * (1_000_000n - percent);
        const unit = 10n ** 9n;
        const [whole, rest] = [scaled / unit, scaled % unit];
        const up = rest > unit / 2n || (rest === unit / 2n && whole % 2n === 1n);
        const expected = text(up ? whole + 1n : whole, 15).replace(/\.?0+$/, '');
        expect(percentOff(text(atoms, 18), text(percent, 4))).toBe(expected);
      }),
    );
  });
});

describe('overlapping entries', () => {
  it('have one selector and a common time', () => {
    const first = entry({ id: 1, providerId: 5, to: day(3) });
    expect(overlap([first, entry({ id: 2, providerId: 5, from: day(3) })])).toBeUndefined();
    expect(overlap([first, entry({ id: 2, from: day(1) })])).toBeUndefined();
    expect(overlap([first, entry({ id: 2, providerId: 5, term: 'spot', from: day(1) })])).toBeUndefined();
    const later = entry({ id: 2, providerId: 5, from: day(2) });
    expect(overlap([later, first])).toEqual([first, later]);
    expect(overlap([entry({ id: 3 }), later, entry({ id: 4 })])?.map(({ id }) => id)).toEqual([3, 4]);
  });
});
