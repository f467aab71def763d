/** Terms of machines and prices of regions, of each adapter that states some. */
import { describe, expect, it } from 'vitest';
import { planProblem } from '../../src/domain/database-plan.ts';
import { catalogueAdapters } from '../../src/sources/registry.ts';
import { SourceError } from '../../src/sources/source.ts';
import type { FakeAnswer } from '../support/fake-upstream.ts';
import { caseOf, endpointOf, type FixturePage, type Json, listPointer } from './catalogue-case.ts';
import { byName, type Catalogue, nameOf, read, sortedPlans, WRONG_PRICES } from './catalogue-reading.ts';
import { changed, without, withoutFirst } from './json-changes.ts';

/** All machines remain at their prices. Prices of terms or regions are missing, and a new rejected row names `field`. */
function expectOnlyPricesLost(before: Catalogue, after: Catalogue, field: string): void {
  const onDemand = ({ offers }: Catalogue) => offers.map(({ terms: _, ...offer }) => offer);
  expect(onDemand(after)).toEqual(onDemand(before));
  const [known, left] = [otherPrices(before), otherPrices(after)];
  expect(left.length).toBeLessThan(known.length);
  expect(known).toEqual(expect.arrayContaining(left));
  const fresh = after.rejected.filter((row) => !before.rejected.some((old) => old.reason === row.reason));
  expect(fresh.map((row) => row.reason).join('\n')).toContain(field);
}

function otherPrices({ offers, regionPrices, databasePlans }: Catalogue): string[] {
  const terms = offers.flatMap((offer) =>
    Object.entries(offer.terms ?? {}).map((term) => `${nameOf(offer)} ${JSON.stringify(term)}`),
  );
  const regions = Object.entries(regionPrices).flatMap(([code, prices]) =>
    prices.map(({ isDefault: _, ...price }) => `${code} ${JSON.stringify(price)}`),
  );
  const plans = Object.entries(databasePlans).flatMap(([code, stated]) =>
    stated.map((plan) => `${code} ${JSON.stringify(plan)}`),
  );
  return [...terms, ...regions, ...plans];
}

const cases = await Promise.all(
  catalogueAdapters.map(async (adapter) => ({ adapter, own: await caseOf(adapter.id) })),
);

describe.for(cases)('$adapter.id', ({ adapter, own }) => {
  const instead = (page: FixturePage, answer: FakeAnswer) => (requested: FixturePage) =>
    requested === page ? answer : undefined;
  let reading: Promise<Catalogue> | undefined;
  /** The case's own pages, read once for all tests. */
  const usual = () => {
    reading ??= read(adapter, own);
    return reading;
  };
  const fields = (of: 'otherRequired' | 'otherPrices') =>
    own.pages.flatMap((page) => (page[of] ?? []).map((pointer) => [pointer, page] as const));

  it('states terms and prices of regions in the form of the contract', async () => {
    const found = await usual();
    expect(found.regionPrices).toEqual(
      Object.fromEntries(
        Object.entries(own.regionPrices ?? {}).map(([code, prices]) => [code, prices.toSorted(byName)]),
      ),
    );
    expect(found.databasePlans).toEqual(
      Object.fromEntries(
        Object.entries(own.databasePlans ?? {}).map(([code, plans]) => [code, sortedPlans(plans)]),
      ),
    );
    for (const [code, plans] of Object.entries(found.databasePlans)) {
      expect(found.regions, 'a region with plans').toHaveProperty([code]);
      for (const plan of plans) expect([plan, planProblem(plan)]).toEqual([plan, undefined]);
    }
    for (const [code, prices] of Object.entries(found.regionPrices)) {
      expect(found.regions, 'a region with prices').toHaveProperty([code]);
      expect(new Set(prices.map(({ item, name }) => `${item} ${name}`)).size).toBe(prices.length);
      for (const [item, same] of Map.groupBy(prices, (price) => price.item))
        expect([item, same.filter(({ isDefault }) => isDefault).length]).toEqual([item, 1]);
      for (const { tiers, per, item, name } of prices) {
        expect(tiers[0]?.from).toBe('0');
        expect(tiers.map(({ from }) => Number(from))).toEqual(
          tiers.map(({ from }) => Number(from)).toSorted((a, b) => a - b),
        );
        // The provider says that it charges no traffic.
        if (name !== 'unmetered') expect(tiers.some(({ amount }) => Number(amount) > 0)).toBe(true);
        expect(per === undefined).toBe(item === 'traffic_out');
      }
    }
    for (const { terms = {}, price: onDemand } of found.offers) {
      for (const { price, upfront = '0' } of Object.values(terms)) {
        expect(Number(price.amount) + Number(upfront)).toBeGreaterThan(0);
        expect(price.currency).toBe(onDemand.currency);
      }
    }
  });

  it.for(fields('otherRequired'))(
    'loses only a price of a term or a region if %s is missing or of another type',
    async ([pointer, page]) => {
      const before = await usual();
      const field = pointer.split('/').at(-1) ?? '';
      for (const json of [
        without(page.json, pointer),
        changed(page.json, pointer, () => ({ other: true })),
      ]) {
        const after = await read(adapter, own, instead(page, { json })).catch((error: unknown) => {
          if (!(error instanceof SourceError)) throw error;
          expect(error).toMatchObject({ kind: 'invalid', message: expect.stringContaining(field) });
          return undefined;
        });
        if (after !== undefined) expectOnlyPricesLost(before, after, field);
      }
    },
  );

  it.for(fields('otherPrices'))(
    'loses only that price if %s is negative, absurd or not a number',
    async ([pointer, page]) => {
      const before = await usual();
      for (const wrong of WRONG_PRICES) {
        const price = (value: Json) => (typeof value === 'string' ? String(wrong) : wrong);
        const json = changed(page.json, pointer, price);
        const after = await read(adapter, own, instead(page, { json }));
        expectOnlyPricesLost(before, after, pointer.split('/').at(-1) ?? '');
      }
    },
  );

  it.for(own.pages.filter((page) => page.additional).map((page) => [page.path, page] as const))(
    'loses only prices of regions, and reports a reason, if %s fails in any way',
    async ([path, page]) => {
      const before = await usual();
      const limited: FakeAnswer = { status: 429, headers: { 'retry-after': '7' } };
      const answers: FakeAnswer[] = [
        ...[401, 404, 500].map((status) => ({ status })),
        limited,
        { raw: '<html>Down for maintenance</html>', headers: { 'content-type': 'text/html' } },
        { json: page.json, cutAfter: 20 },
        ...(own.uncounted?.includes(endpointOf(page))
          ? []
          : [{ json: changed(page.json, listPointer(page), withoutFirst) }]),
      ];
      for (const answer of answers) {
        const after = await read(adapter, own, instead(page, answer));
        expectOnlyPricesLost(before, after, path);
        expect(after.totals).toEqual(before.totals);
      }
    },
  );
});
