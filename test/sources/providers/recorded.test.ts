import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { hasEnded, limitBroken, type Offer } from '../../../src/domain/machine.ts';
import { openSourceHttp } from '../../../src/sources/http/http.ts';
import { adapter as hetzner } from '../../../src/sources/providers/hetzner.ts';
import { adapter as linode } from '../../../src/sources/providers/linode.ts';
import type { CatalogueAdapter, CatalogueItem } from '../../../src/sources/source.ts';
import { type FakeUpstream, fakeUpstream } from '../../support/fake-upstream.ts';
import { needs, RECORDED_PAYLOADS } from '../../support/needs.ts';
import { hetznerPricing, linodePrices } from '../../support/provider-answers.ts';

const DATA = new URL('../../../../shared/data/', import.meta.url);
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

const recorded = (path: string) => ({ raw: readFileSync(new URL(path, DATA)) });
const types = (offers: readonly Offer[]) => new Set(offers.map((offer) => offer.name)).size;

describe(
  'the recorded catalogue of Hetzner',
  needs(existsSync(new URL('hetzner/', DATA)), RECORDED_PAYLOADS),
  () => {
    it('has 24 types at 105 prices, 99 within the limits, 84 of them still sold', async () => {
      await using upstream = await fakeUpstream();
      const query = { page: '1', per_page: '50' };
      upstream.expect({ path: '/v1/locations', query }, recorded('hetzner/locations.json'));
      upstream.expect({ path: '/v1/server_types', query }, recorded('hetzner/server_types.json'));
      hetznerPricing(upstream);
      const { offers, within, regions, rejected, totals } = await read(hetzner, upstream);
      expect([types(offers), offers.length, within.length]).toEqual([24, 105, 99]);
      expect(within.filter(({ facts = {} }) => !hasEnded(facts, NOW))).toHaveLength(84);
      expect(new Set(within.map((offer) => offer.excluded))).toEqual(new Set([undefined]));
      expect([regions, rejected]).toEqual([6, []]);
      expect(totals).toEqual([
        ['locations', 6, 6],
        ['server_types', 24, 24],
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
    });
  },
);

describe(
  'the recorded catalogue of Linode',
  needs(existsSync(new URL('linode/', DATA)), RECORDED_PAYLOADS),
  () => {
    it('has 37 types, 23 within the limits, 19 of them without an accelerator', async () => {
      await using upstream = await fakeUpstream();
      const first = { page: '1' };
      upstream.expect({ path: '/v4/regions', query: first }, recorded('linode/regions.json'));
      upstream.expect({ path: '/v4/linode/types', query: first }, recorded('linode/types.json'));
      linodePrices(upstream);
      const pages = readdirSync(new URL('linode/', DATA)).filter((name) =>
        name.startsWith('regions-availability'),
      );
      for (const [index] of pages.entries()) {
        const page = String(index + 1);
        upstream.expect(
          { path: '/v4beta/regions/availability', query: { page } },
          recorded(`linode/regions-availability-page${page}.json`),
        );
      }
      const { offers, within, regions, rejected, totals } = await read(linode, upstream);
      const plain = within.filter((offer) => offer.excluded !== 'accelerated');
      expect([types(offers), types(within), types(plain)]).toEqual([37, 23, 19]);
      expect(types(plain.filter((offer) => offer.excluded === undefined))).toBe(19);
      expect([regions, rejected]).toEqual([34, []]);
      expect(totals).toEqual([
        ['regions', 34, 34],
        ['types', 37, 37],
        ['availability', 486, 486],
      ]);
      // Only premium types are sold out somewhere without an accelerator: 4 of the 144 pairs with that capability.
      const soldOut = offers.filter((offer) => offer.excluded === 'sold_out');
      expect(soldOut.map((offer) => offer.name)).toEqual(Array(4).fill('g7-premium-64'));
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
    });
  },
);
