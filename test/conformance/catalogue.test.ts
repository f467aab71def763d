import { isDeepStrictEqual } from 'node:util';
import { CronExpressionParser } from 'cron-parser';
import { describe, expect, it } from 'vitest';
import { ALL_SETTINGS } from '../../src/app/features.ts';
import type { Offer } from '../../src/domain/machine.ts';
import { catalogueAdapters } from '../../src/sources/registry.ts';
import { descriptionOf, environmentKey, readOptions } from '../../src/sources/schema/options.ts';
import { SourceError } from '../../src/sources/source.ts';
import type { FakeAnswer } from '../support/fake-upstream.ts';
import { caseOf, endpointOf, type FixturePage, type Json, listPointer } from './catalogue-case.ts';
import { type Catalogue, nameOf, read, sorted, WRONG_PRICES, withFacts } from './catalogue-reading.ts';
import { failure, inTurn, PASSING } from './failing.ts';
import { changed, everyObject, fieldsOutsideRows, reversed, without, withoutFirst } from './json-changes.ts';

/** Each earlier offer is unchanged, or a new rejected row excuses it and names `field`. */
function expectNothingLost(before: Catalogue, after: Catalogue, field: string): void {
  const fresh = after.rejected.filter((row) => !before.rejected.some((old) => old.key === row.key));
  expect(fresh.map((row) => row.reason).join('\n')).toContain(field);
  const nameless = fresh.some((row) => row.name === undefined && row.regionCode === undefined);
  const isExcused = (offer: Offer) =>
    fresh.some((row) =>
      row.name !== undefined || row.regionCode !== undefined
        ? (row.name ?? offer.name) === offer.name && (row.regionCode ?? offer.regionCode) === offer.regionCode
        : nameless,
    );
  const remaining = new Map(after.offers.map((offer) => [nameOf(offer), offer]));
  for (const offer of before.offers) {
    if (remaining.has(nameOf(offer))) expect(remaining.get(nameOf(offer))).toEqual(offer);
    else expect(isExcused(offer), `${nameOf(offer)} disappeared silently`).toBe(true);
  }
  expect(after.offers.length).toBeLessThanOrEqual(before.offers.length);
}

const HTML: FakeAnswer = {
  raw: '<html><body>Down for maintenance</body></html>',
  headers: { 'content-type': 'text/html' },
};
const REFUSED: FakeAnswer = { status: 401, json: { error: 'token' } };
const nameOfPage = ({ path, query }: FixturePage) => `${path}?${new URLSearchParams(query)}`;

describe('each adapter', () => {
  it('has a unique id, provider id and provider name', () => {
    for (const values of [
      catalogueAdapters.map((adapter) => adapter.id),
      catalogueAdapters.flatMap(({ provider }) => provider?.id ?? []).map(String),
      catalogueAdapters.flatMap(({ provider }) => provider?.name ?? []),
    ]) {
      expect(new Set(values).size).toBe(values.length);
    }
  });

  it('must have a conformance case', async () => {
    await expect(caseOf('nowhere')).rejects.toThrow('write test/conformance/nowhere.ts');
  });
});

// An adapter without a case fails the whole suite here.
const cases = await Promise.all(
  catalogueAdapters.map(async (adapter) => ({ adapter, own: await caseOf(adapter.id) })),
);

describe.for(cases)('$adapter.id', ({ adapter, own }) => {
  const pages = own.pages.map((page) => [nameOfPage(page), page] as const);
  const instead = (page: FixturePage, answer: FakeAnswer) => (requested: FixturePage) =>
    requested === page ? answer : undefined;
  const fields = (of: 'required' | 'prices') =>
    own.pages.flatMap((page) => page[of].map((pointer) => [pointer, page] as const));

  let reading: Promise<Catalogue> | undefined;
  /** The case's own pages, read once for all tests. */
  const usual = () => {
    reading ??= read(adapter, own);
    return reading;
  };

  it('has a complete description', () => {
    expect(adapter.id).toMatch(/^[a-z0-9-]+$/);
    if (adapter.provider) {
      const { id, name } = adapter.provider;
      expect(name).not.toBe('');
      // Ids from 1000 on belong to providers without an adapter.
      expect(Number.isInteger(id) && id > 0 && id < 1000).toBe(true);
      expect(new URL(adapter.baseUrl).protocol).toBe('https:');
      expect(adapter.currency).toMatch(/^[A-Z]{3}$/);
    } else {
      expect(adapter.currencyFrom).not.toBe('');
      const { options, problems } = readOptions(
        adapter.options,
        own.options?.('http://upstream') ?? {},
        String,
      );
      expect(problems).toEqual([]);
      expect(options.provider).not.toBe('');
      for (const [name, option] of Object.entries(adapter.options.shape)) {
        expect(descriptionOf(option), `the option ${name} needs a description`).not.toBe('');
        // These names have other meanings in the environment; see also the settings that begin with FLEETBOOK_.
        const credentials = ['token', 'tokenCommand', 'credentialType', 'apiKey', 'clientId', 'clientSecret'];
        expect(['url', 'schedule', ...credentials, 'tokenUrl', 'scope', 'tenantId']).not.toContain(name);
        expect(Object.keys(ALL_SETTINGS)).not.toContain(environmentKey(adapter.id, name));
      }
    }
    expect(adapter.schedule.split(' ')).toHaveLength(5);
    expect(CronExpressionParser.parse(adapter.schedule, { tz: 'UTC' }).hasNext()).toBe(true);
    expect(new Set(own.pages.map(endpointOf))).toEqual(new Set(adapter.endpoints));
  });

  it('reads regions, offers, reasons and totals, with one request for each page', async () => {
    const found = await read(adapter, own, undefined, 'all');
    expect(found.regions).toEqual(own.regions);
    expect(found.offers).toEqual(sorted(own.offers.map((offer) => withFacts(offer, own))));
    const reasons = own.rejected.map(({ key, reason }) => ({ key, reason: expect.stringMatching(reason) }));
    expect(found.rejected).toHaveLength(reasons.length);
    expect(found.rejected).toEqual(
      expect.arrayContaining(reasons.map((row) => expect.objectContaining(row))),
    );
    const stated = new Set(found.offers.flatMap(({ facts = {} }) => Object.keys(facts)));
    expect(stated, 'the facts that the adapter says it states').toEqual(new Set(adapter.facts ?? []));
    for (const total of found.totals) expect(total.fetched).toBe(total.advertised);
    for (const { ramUnit, price } of found.offers) {
      if (adapter.memoryUnit) expect(ramUnit).toBe(adapter.memoryUnit === 'GB' ? 'Decimal' : 'Binary');
      if (adapter.currency) expect(price.currency).toBe(adapter.currency);
    }
  });

  it('ignores unknown fields', async () => {
    const found = await read(
      adapter,
      own,
      ({ json, maps }) => ({ json: everyObject(json, 'unheard_of', { deep: [1] }, maps) }),
      'all',
    );
    expect(found).toEqual(await usual());
  });

  it('ignores the order of rows', async () => {
    const [found, before] = [
      await read(adapter, own, (page) => ({ json: changed(page.json, listPointer(page), reversed) })),
      await usual(),
    ];
    expect(found.offers).toEqual(before.offers);
    expect(found.regions).toEqual(before.regions);
    expect(found.rejected.map((row) => row.key).toSorted()).toEqual(
      before.rejected.map((row) => row.key).toSorted(),
    );
  });

  it.for(fields('required'))(
    'never loses a machine silently if %s is missing or of another type',
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
        if (after !== undefined) expectNothingLost(before, after, field);
      }
    },
  );

  it.for(fields('prices'))(
    'rejects the row if %s is negative, absurd or not a number',
    async ([pointer, page]) => {
      const before = await usual();
      for (const wrong of WRONG_PRICES) {
        const price = (value: Json) => (typeof value === 'string' ? String(wrong) : wrong);
        const json = changed(page.json, pointer, price);
        const after = await read(adapter, own, instead(page, { json }));
        expect(after.offers.length, JSON.stringify(wrong)).toBeLessThan(before.offers.length);
        expectNothingLost(before, after, pointer.split('/').at(-1) ?? '');
      }
    },
  );

  it.for(fields('prices'))('does not publish a machine at a price of zero: %s', async ([pointer, page]) => {
    const before = await usual();
    const json = changed(page.json, pointer, (value) => (typeof value === 'string' ? '0.0000000000' : 0));
    const after = await read(adapter, own, instead(page, { json }));
    expect(after.rejected).toEqual(before.rejected);
    expect(after.offers.map(nameOf)).toEqual(before.offers.map(nameOf));
    const free = after.offers.filter((offer) => offer.excluded === 'zero_price');
    expect(free.length).toBeGreaterThan(0);
    expect(
      after.offers.filter((offer) => offer.price.amount === '0' && offer.excluded === undefined),
    ).toEqual([]);
  });

  const unwell = (page: FixturePage): FakeAnswer[] => {
    const cutAfter = Math.floor(JSON.stringify(page.json).length / 2);
    const framings = inTurn(['length', 'chunked', 'close'] as const, own.pages.indexOf(page));
    return [{ status: 500 }, ...framings.map((framing) => ({ json: page.json, cutAfter, framing }))];
  };
  const needed = pages.filter(([, page]) => !page.additional);
  const common = needed.filter(([, page]) => page.region === undefined);
  const regional = pages.filter(([, page]) => page.region !== undefined);

  it.for(needed)('leaves its source alone for as long as %s requires', async ([, page]) => {
    const limited = instead(page, { status: 429, headers: { 'retry-after': '7' } });
    expect(await failure(read(adapter, own, limited), 'retry')).toMatchObject({ retryAfterMs: 7_000 });
  });

  it.for(pages)('reads everything if %s fails once, with no other repeated request', async ([, page]) => {
    const before = await usual();
    for (const answer of inTurn(PASSING, own.pages.indexOf(page)))
      expect(await read(adapter, own, undefined, 'all', { page, answer })).toEqual(before);
  });

  it.for(common)('fails with retry if %s fails', async ([, page]) => {
    for (const answer of unwell(page)) await failure(read(adapter, own, instead(page, answer)), 'retry');
  });

  it.for(common)('fails with the right meaning if %s is HTML, rejected or gone', async ([, page]) => {
    await failure(read(adapter, own, instead(page, HTML)), 'invalid');
    await failure(read(adapter, own, instead(page, REFUSED)), 'misconfigured');
    await failure(read(adapter, own, instead(page, { status: 404 })), 'gone');
  });

  it.for(regional)('holds one region, and no other, if %s fails in any way', async ([, page]) => {
    const before = await usual();
    const place = own.pages.indexOf(page);
    for (const answer of [
      ...inTurn(unwell(page), place),
      ...inTurn<FakeAnswer>([HTML, REFUSED, { status: 404 }], place),
    ]) {
      const after = await read(adapter, own, instead(page, answer));
      expect(after.rejected).toContainEqual(
        expect.objectContaining({ regionCode: page.region, reason: expect.stringContaining(page.path) }),
      );
      expect(new Set(after.unread)).toEqual(new Set([...before.unread, page.region]));
      expect(after.offers).toEqual(before.offers.filter((offer) => offer.regionCode !== page.region));
    }
  });

  it.for(regional.slice(0, 1))('fails if %s and all other regions cannot be read', async () => {
    const down = (answer: FakeAnswer) => (page: FixturePage) =>
      page.region === undefined ? undefined : answer;
    await failure(read(adapter, own, down({ status: 500 })), 'retry');
    await failure(read(adapter, own, down({ status: 404 })), 'gone');
  });

  const needs = new Set(needed.map(([, page]) => endpointOf(page)));
  it.for(Object.entries(own.empty).filter(([path]) => needs.has(path)))(
    'never treats an empty %s as "all gone"',
    async ([path, json]) => {
      const emptied = read(adapter, own, (page) => (endpointOf(page) === path ? { json } : undefined));
      expect((await failure(emptied, 'invalid')).message).toContain('lists nothing');
    },
  );

  it('has a fixture of an empty answer for each endpoint', () => {
    expect(Object.keys(own.empty).toSorted()).toEqual([...adapter.endpoints].toSorted());
  });

  it.for(needed.filter(([, page]) => !own.uncounted?.includes(endpointOf(page))))(
    'reports a lost row of %s',
    async ([, page]) => {
      const json = changed(page.json, listPointer(page), withoutFirst);
      const { totals } = await read(adapter, own, instead(page, { json }));
      expect(totals.filter((total) => total.advertised !== total.fetched)).toHaveLength(1);
    },
  );

  const isPaged = (page: FixturePage) =>
    own.uncounted?.includes(endpointOf(page)) &&
    !own.omitsNext?.includes(endpointOf(page)) &&
    own.pages.some((other) => other !== page && other.path === page.path);
  it.for(pages.filter(([, page]) => isPaged(page)))(
    'does not end the list at %s if a field next to the rows is missing',
    async ([, page]) => {
      const before = await usual();
      for (const pointer of fieldsOutsideRows(page.json, listPointer(page))) {
        const reading = read(adapter, own, instead(page, { json: without(page.json, pointer) }));
        const after = await reading.catch((error: unknown) => {
          if (!(error instanceof SourceError) || error.kind !== 'invalid') throw error;
        });
        if (after) expect(after.offers, `without ${pointer}`).toEqual(before.offers);
      }
    },
  );

  const siblings = (page: FixturePage) =>
    own.pages.filter(
      (other) =>
        other !== page &&
        other.path === page.path &&
        other.additional === page.additional &&
        other.query.page !== undefined &&
        // Lists of other products have the same path.
        isDeepStrictEqual({ ...other.query, page: '' }, { ...page.query, page: '' }),
    );
  it.for(pages.filter(([, page]) => siblings(page).length > 0))(
    'does not accept another page for %s',
    async ([, page]) => {
      for (const { json } of siblings(page)) {
        const reading = read(adapter, own, instead(page, { json }));
        const reported =
          page.region === undefined
            ? (await failure(reading, 'invalid')).message
            : (await reading).rejected.find((row) => row.regionCode === page.region)?.reason;
        expect(reported).toContain(`page ${page.query.page}`);
      }
    },
  );
});
