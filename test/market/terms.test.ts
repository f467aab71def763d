/** Terms and prices of regions: from the builder of a region's columns to the catalogue in memory. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { StoredRegionPrice } from '../../src/domain/prices/region-price.ts';
import { type StoredTerms, TERMS, type Term } from '../../src/domain/prices/term.ts';
import {
  type CatalogueIndex,
  emptyIndex,
  indexBytes,
  updateIndex,
} from '../../src/market/catalogue-index.ts';
import { findMachine, ofTerm } from '../../src/market/machines.ts';
import { search } from '../../src/market/search.ts';
import { runs } from '../support/random.ts';
import * as worlds from './world.ts';

const SOURCE = { price: { amount: '1', per: 'hour', currency: 'EUR' } } as const;
const SINCE = Date.UTC(2026, 0, 2);
const decimal = fc.integer({ min: 1, max: 10_000 }).map((units) => String(units / 1000));
const stored = fc.record({
  price: decimal,
  upfront: fc.option(decimal),
  source: fc.constant(SOURCE),
});
const terms: fc.Arbitrary<StoredTerms | null> = fc.option(
  fc
    .record({
      terms: fc.record(Object.fromEntries(TERMS.map((term) => [term, stored])), { requiredKeys: [] }),
      monthly_cap: fc.option(decimal, { nil: undefined }),
    })
    .map(({ terms: given, monthly_cap: cap }) => ({
      terms: given as StoredTerms['terms'],
      ...(cap === undefined ? {} : { monthly_cap: { price: cap, source: { amount: cap, currency: 'EUR' } } }),
    }))
    .filter(({ terms: given, monthly_cap: cap }) => cap !== undefined || Object.keys(given).length > 0),
);

/** A world whose machines have terms by their ids. */
const world = fc
  .tuple(worlds.world, fc.array(terms, { minLength: 1, maxLength: 9 }))
  .map(([plain, list]) => withTerms(plain, list));

function withTerms(plain: worlds.World, list: readonly (StoredTerms | null)[]): worlds.World {
  const given = (machine: worlds.Machine) => ({
    ...machine,
    terms: list[machine.id % list.length] ?? null,
    termsSince: SINCE + machine.id,
  });
  return new Map([...plain].map(([region, machines]) => [region, machines.map(given)]));
}

/** Returns the machines of the world as the index should find them. */
const wantedOf = (wanted: worlds.World) =>
  [...wanted.values()].flat().map(({ id, name, price, region, terms: given, termsSince }) => ({
    ...{ id, name, price, region, terms: shown(given) },
    monthlyCap: given?.monthly_cap && Number(given.monthly_cap.price),
    termsSince: given ? termsSince : undefined,
  }));

function foundIn(index: CatalogueIndex, all: worlds.World) {
  return [...all.values()].flat().map((machine) => {
    const found = findMachine(index, machine.id) ?? expect.fail('not found');
    const { id, name, price, region, terms: given, monthlyCap, termsSince } = found;
    return { id, name, price, region: region.region.id, terms: given, monthlyCap, termsSince };
  });
}

const shown = (given: StoredTerms | null | undefined) =>
  Object.fromEntries(
    Object.entries(given?.terms ?? {}).map(([term, { price, upfront }]) => [
      term,
      { price: Number(price), upfront: upfront === null ? undefined : Number(upfront) },
    ]),
  );

describe('the catalogue in memory', () => {
  it('has the terms of each machine, after any updates', () => {
    fc.assert(
      fc.property(world, world, (first, second) => {
        const before = worlds.indexOf(emptyIndex(), first);
        expect(foundIn(before, first)).toEqual(wantedOf(first));
        const after = worlds.indexOf(before, second);
        expect(foundIn(after, second)).toEqual(wantedOf(second));
        expect(findMachine(after, 99)).toBeUndefined();
        expect(foundIn(before, first)).toEqual(wantedOf(first));
      }),
      { numRuns: runs(60) },
    );
  });

  it('finds and sorts machines by the price of a term like a full scan', () => {
    const term = fc.constantFrom(...TERMS);
    fc.assert(
      fc.property(world, world, worlds.filters, worlds.sort, term, (first, second, filters, sort, of) => {
        const index = worlds.indexOf(worlds.indexOf(emptyIndex(), first), second);
        const priced = atTerm(new Map([...first, ...second]), of);
        const wanted = worlds.naive(priced, filters, sort).map(({ id }) => id);
        const view = ofTerm(index, of);
        const { rows } = search(view, filters, sort, 1000);
        expect(rows.map((row) => view.rows.ids[row])).toEqual(wanted);
      }),
      { numRuns: runs(100) },
    );
  });

  it('counts no bytes for a catalogue without terms, and counts those of terms', () => {
    const machines = fc.sample(worlds.machinesOf(1), { numRuns: 40, seed: 3 }).flat();
    const byId = [...new Map(machines.map((machine) => [machine.id, machine])).values()];
    const plain = worlds.indexOf(emptyIndex(), new Map([[1, byId]]));
    expect([plain.termRows.size, plain.regions[0]?.terms]).toEqual([0, undefined]);
    const one: StoredTerms = { terms: { spot: { price: '1', upfront: null, source: SOURCE } } };
    const rich = worlds.indexOf(emptyIndex(), withTerms(new Map([[1, byId]]), [one]));
    // A row of the term, its price by id, and its time by id; and the rows by id.
    const ofIds = 4 * (Math.max(...byId.map(({ id }) => id)) + 1);
    expect(indexBytes(rich) - indexBytes(plain)).toBe(byId.length * (36 + 12 + 12) + ofIds);
  });

  it('has the prices of a region without the amounts of the source', () => {
    const prices: StoredRegionPrice[] = [
      {
        item: 'traffic_out',
        name: 'internet',
        isDefault: true,
        unit: 'GB',
        tiers: [{ from: '0', price: '0.01' }],
        source: { tiers: [{ from: '0', amount: '0.01' }], currency: 'USD', per: undefined },
      },
    ];
    const updates = [worlds.updateOf(1, [], 1, prices), worlds.updateOf(2, [])];
    const work = updateIndex(emptyIndex(), updates);
    let turn = work.next();
    while (!turn.done) turn = work.next();
    const { source: _, ...visible } = prices[0] ?? expect.unreachable();
    expect(turn.value.regions.map(({ region, prices }) => [region.id, prices])).toEqual([
      [1, [visible]],
      [2, undefined],
    ]);
  });
});

/** Returns the machines with the term, at its price. */
function atTerm(all: worlds.World, term: Term): worlds.World {
  const priced = (machine: worlds.Machine) => {
    const price = machine.terms?.terms[term]?.price;
    return price === undefined ? [] : [{ ...machine, price: Number(price) }];
  };
  return new Map([...all].map(([region, machines]) => [region, machines.flatMap(priced)]));
}
