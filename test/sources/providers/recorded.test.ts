import { expect, it } from 'vitest';
import { hasEnded, limitBroken, type Offer } from '../../../src/domain/machine.ts';
import { openSourceHttp } from '../../../src/sources/http/http.ts';
import { adapter as hetzner } from '../../../src/sources/providers/hetzner.ts';
import { adapter as linode } from '../../../src/sources/providers/linode.ts';
import type { CatalogueAdapter, CatalogueItem } from '../../../src/sources/source.ts';
import { type FakeUpstream, fakeUpstream } from '../../support/fake-upstream.ts';
import { needsRecorded, RECORDED, WRITTEN } from '../../support/payloads.ts';
import { hetznerPricing, linodePrices } from '../../support/provider-answers.ts';

const NOW = new Date('2026-03-01T00:00:00Z');

async function read(adapter: CatalogueAdapter, upstream: FakeUpstream) {
  const http = openSourceHttp({
    baseUrl: upstream.url,
    credentials: 'none',
    deadlineMs: 10_000,
    maxBytes: 10_000_000,
  });
  const items: CatalogueItem[] = [];
  for await (const item of adapter.catalogue({ http, now: () => NOW })) items.push(item);
  const offers = items.flatMap((item) => (item.kind === 'offer' ? [item.offer] : []));
  return {
    offers,
    within: offers.filter((offer) => limitBroken(offer) === undefined),
    regions: items.filter((item) => item.kind === 'region').length,
    rejected: items.filter((item) => item.kind === 'rejected'),
    totals: items.flatMap((item) =>
      item.kind === 'total' ? [[item.of, item.advertised, item.fetched]] : [],
    ),
  };
}

const types = (offers: readonly Offer[]) => new Set(offers.map((offer) => offer.name)).size;

const HETZNER = [
  { kind: 'small', payloads: WRITTEN, types: 4, offers: 8, within: 7, sold: 5, regions: 3, options: {} },
  {
    kind: 'recorded',
    payloads: RECORDED,
    types: 24,
    offers: 105,
    within: 99,
    sold: 84,
    regions: 6,
    options: needsRecorded,
  },
];
for (const { kind, payloads, options, ...expected } of HETZNER)
  it(
    `Hetzner’s ${kind} catalogue has ${expected.types} types at ${expected.offers} prices, ${expected.within} within the limits, ${expected.sold} of them still sold`,
    options,
    async () => {
      await using upstream = await fakeUpstream();
      const query = { page: '1', per_page: '50' };
      upstream.expect({ path: '/v1/locations', query }, payloads.raw('hetzner/locations.json'));
      upstream.expect({ path: '/v1/server_types', query }, payloads.raw('hetzner/server_types.json'));
      hetznerPricing(upstream);
      const { offers, within, regions, rejected, totals } = await read(hetzner, upstream);
      expect([types(offers), offers.length, within.length]).toEqual([
        expected.types,
        expected.offers,
        expected.within,
      ]);
      expect(within.filter(({ facts = {} }) => !hasEnded(facts, NOW))).toHaveLength(expected.sold);
      expect(new Set(within.map((offer) => offer.excluded))).toEqual(new Set([undefined]));
      expect([regions, rejected]).toEqual([expected.regions, []]);
      expect(totals).toEqual([
        ['locations', expected.regions, expected.regions],
        ['server_types', expected.types, expected.types],
      ]);
      expect(offers.find((offer) => offer.name === 'cpx11' && offer.regionCode === 'fsn1')).toEqual({
        regionCode: 'fsn1',
        name: 'cpx11',
        cpu: 2,
        ram: 2,
        ramUnit: 'Decimal',
        price: { amount: expect.stringMatching(/^0\.\d+[1-9]$/), per: 'hour', currency: 'EUR' },
        monthlyCap: '3.85',
        facts: { architecture: 'x86_64', cpuKind: 'shared', localDisk: 40, includedTraffic: 21_990.233 },
      });
    },
  );

const LINODE = [
  {
    kind: 'small',
    payloads: WRITTEN,
    types: 5,
    within: 4,
    plain: 3,
    regions: 2,
    availability: 3,
    soldOut: ['g7-premium-64'],
    options: {},
  },
  {
    kind: 'recorded',
    payloads: RECORDED,
    types: 37,
    within: 23,
    plain: 19,
    regions: 34,
    availability: 486,
    // 4 of the 144 pairs with the capability of premium types.
    soldOut: Array(4).fill('g7-premium-64'),
    options: needsRecorded,
  },
];
for (const { kind, payloads, options, ...expected } of LINODE)
  it(
    `Linode’s ${kind} catalogue has ${expected.types} types, ${expected.within} within the limits, ${expected.plain} of them without an accelerator`,
    options,
    async () => {
      await using upstream = await fakeUpstream();
      const first = { page: '1' };
      upstream.expect({ path: '/v4/regions', query: first }, payloads.raw('linode/regions.json'));
      upstream.expect({ path: '/v4/linode/types', query: first }, payloads.raw('linode/types.json'));
      linodePrices(upstream);
      for (const [index, page] of payloads.availability().entries()) {
        const call = { path: '/v4beta/regions/availability', query: { page: String(index + 1) } };
        upstream.expect(call, payloads.raw(page));
      }
      const { offers, within, regions, rejected, totals } = await read(linode, upstream);
      const plain = within.filter((offer) => offer.excluded !== 'accelerated');
      expect([types(offers), types(within), types(plain)]).toEqual([
        expected.types,
        expected.within,
        expected.plain,
      ]);
      expect(types(plain.filter((offer) => offer.excluded === undefined))).toBe(expected.plain);
      expect([regions, rejected]).toEqual([expected.regions, []]);
      expect(totals).toEqual([
        ['regions', expected.regions, expected.regions],
        ['types', expected.types, expected.types],
        ['availability', expected.availability, expected.availability],
      ]);
      // Only premium types are sold out somewhere without an accelerator.
      const soldOut = offers.filter((offer) => offer.excluded === 'sold_out');
      expect(soldOut.map((offer) => offer.name)).toEqual(expected.soldOut);
      // "1024 MB" is a GiB, and an override has priority over the common price.
      const nanode = (regionCode: string) =>
        offers.find((offer) => offer.name === 'g6-nanode-1' && offer.regionCode === regionCode);
      expect(nanode('us-east')).toMatchObject({
        facts: {
          cpuKind: 'shared',
          localDisk: 26.844,
          network: 1000,
          includedTraffic: 1000,
          includedIpv4: 1,
        },
        ram: 1,
        ramUnit: 'Binary',
        price: { amount: '0.0075', per: 'hour', currency: 'USD' },
      });
      expect(nanode('br-gru')).toMatchObject({ price: { amount: '0.0105' } });
    },
  );
