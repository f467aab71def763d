import { type OfferedPlan, planName } from '../../src/domain/database-plan.ts';
import type { Offer } from '../../src/domain/machine.ts';
import type { OfferedRegionPrice } from '../../src/domain/prices/region-price.ts';
import { openSourceHttp } from '../../src/sources/http/http.ts';
import type { AnyCatalogueAdapter, CatalogueItem, RejectedRow } from '../../src/sources/source.ts';
import { type FakeAnswer, fakeUpstream } from '../support/fake-upstream.ts';
import { IS_LONG } from '../support/random.ts';
import type { CatalogueCase, FixturePage, Json } from './catalogue-case.ts';
import { CREDENTIALS, retriesOfARun, TOKEN } from './failing.ts';

export interface Catalogue {
  readonly regions: Readonly<Record<string, string>>;
  readonly offers: readonly Offer[];
  /** By region code. */
  readonly regionPrices: Readonly<Record<string, readonly OfferedRegionPrice[]>>;
  /** By region code. */
  readonly databasePlans: Readonly<Record<string, readonly OfferedPlan[]>>;
  /** With unread regions, which excuse their machines as a rejected row does. */
  readonly rejected: readonly RejectedRow[];
  readonly unread: readonly string[];
  readonly totals: readonly Extract<CatalogueItem, { kind: 'total' }>[];
}

/** No price may be one of these. All adapters parse prices with the same code, so a change tests three. */
export const WRONG_PRICES: readonly Json[] = [
  ...[-0.01, 1e30, '0x10'],
  ...(IS_LONG ? ['free', '', true, 'Infinity'] : []),
];

/** Reads the case's pages, some with other answers; with `all`, each must be requested exactly once. */
export async function read(
  adapter: AnyCatalogueAdapter,
  { pages, now, basePath = '', options }: CatalogueCase,
  otherwise: (page: FixturePage) => FakeAnswer | undefined = () => undefined,
  all: 'all' | 'any' = 'any',
  failsOnce?: { readonly page: FixturePage; readonly answer: FakeAnswer },
): Promise<Catalogue> {
  await using upstream = await fakeUpstream();
  if (failsOnce)
    upstream.expect({ path: failsOnce.page.path, query: failsOnce.page.query }, failsOnce.answer);
  for (const page of pages) {
    const call = {
      path: page.path,
      query: page.query,
      headers: CREDENTIALS[page.anonymous ? 'none' : adapter.credentials],
      times: all === 'all' ? 1 : all,
    };
    const answer = otherwise(page) ?? { json: page.json };
    upstream.expect(call, { ...answer, headers: { ...page.headers, ...answer.headers } });
  }
  const http = openSourceHttp({
    baseUrl: upstream.url + basePath,
    credentials: adapter.credentials,
    token: TOKEN,
    deadlineMs: 5_000,
    maxBytes: 1_000_000,
    ...(failsOnce && { retries: retriesOfARun() }),
  });
  const items: CatalogueItem[] = [];
  const context = { http, now: () => now, options: options?.(upstream.url) };
  for await (const item of adapter.catalogue(context)) items.push(item);
  return {
    regions: Object.fromEntries(
      items.flatMap((item) => (item.kind === 'region' ? [[item.code, item.name]] : [])),
    ),
    offers: sorted(items.flatMap((item) => (item.kind === 'offer' ? [item.offer] : []))),
    regionPrices: regionPricesIn(items),
    databasePlans: databasePlansIn(items),
    rejected: items.flatMap((item) => {
      if (item.kind !== 'unread') return item.kind === 'rejected' ? [item] : [];
      const { regionCode, reason } = item;
      return [{ kind: 'rejected', key: regionCode, regionCode, reason }];
    }),
    unread: items.filter((item) => item.kind === 'unread').map((item) => item.regionCode),
    totals: items.filter((item) => item.kind === 'total'),
  };
}

function regionPricesIn(items: readonly CatalogueItem[]): Catalogue['regionPrices'] {
  const rows = items.filter((item) => item.kind === 'region-price');
  const byRegion = Map.groupBy(rows, ({ regionCode }) => regionCode);
  return Object.fromEntries(
    [...byRegion].map(([code, prices]) => [code, prices.map(({ price }) => price).toSorted(byName)]),
  );
}

function databasePlansIn(items: readonly CatalogueItem[]): Catalogue['databasePlans'] {
  const rows = items.filter((item) => item.kind === 'database-plan');
  const byRegion = Map.groupBy(rows, ({ regionCode }) => regionCode);
  return Object.fromEntries(
    [...byRegion].map(([code, plans]) => [code, sortedPlans(plans.map(({ plan }) => plan))]),
  );
}

export function sortedPlans(plans: readonly OfferedPlan[]): OfferedPlan[] {
  return plans.toSorted((a, b) => (planName(a) < planName(b) ? -1 : 1));
}

export function byName(a: OfferedRegionPrice, b: OfferedRegionPrice): number {
  return `${a.item} ${a.name}` < `${b.item} ${b.name}` ? -1 : 1;
}

export function sorted(offers: readonly Offer[]): Offer[] {
  return offers.toSorted((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
}

export function withFacts(offer: Offer, { facts = {}, terms = {} }: CatalogueCase): Offer {
  const own = facts[nameOf(offer)] ?? facts[offer.name];
  return { ...offer, ...(own && { facts: own }), ...(terms[nameOf(offer)] ?? terms[offer.name]) };
}

export function nameOf({ name, regionCode }: { name?: string; regionCode?: string }): string {
  return `${name}@${regionCode}`;
}
