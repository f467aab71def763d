/**
 * 100 random caps, and all prices of regions, compared with an independent calculation from the payload: a small one, a
 * recorded one where it exists, or a generated one.
 */
import { describe, expect, it } from 'vitest';
import { adapter as digitalocean } from '../../../src/sources/providers/digitalocean.ts';
import { adapter as hetzner } from '../../../src/sources/providers/hetzner.ts';
import { adapter as linode } from '../../../src/sources/providers/linode.ts';
import { adapter as ovh } from '../../../src/sources/providers/ovh.ts';
import { adapter as scaleway } from '../../../src/sources/providers/scaleway.ts';
import { adapter as upcloud } from '../../../src/sources/providers/upcloud.ts';
import { adapter as vultr } from '../../../src/sources/providers/vultr.ts';
import type { AnyCatalogueAdapter, CatalogueItem } from '../../../src/sources/source.ts';
import { type FakeUpstream, fakeUpstream } from '../../support/fake-upstream.ts';
import { needsRecorded, RECORDED, WRITTEN } from '../../support/payloads.ts';
import {
  hetznerPricing,
  linodePrices,
  scaleway as scalewayZones,
  upcloudDatabases,
} from '../../support/provider-answers.ts';
import { readCatalogue } from './read-catalogue.ts';

/** Numbers from 0 to below 1 (mulberry32), the same in each run. */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A decimal as a fraction: numerator, and its places. The product of two is exact. */
function fraction(text: string | number): [bigint, number] {
  const [whole = '', part = ''] = String(text).split('.');
  return [BigInt(whole + part), part.length];
}

/** True if `found` = `stated` × `numerator` ÷ `denominator`, exactly. */
function isExactly(
  found: string | undefined,
  stated: string | number,
  numerator = 1n,
  denominator = 1n,
): boolean {
  const [a, aPlaces] = fraction(found ?? expect.unreachable(`no price for ${stated}`));
  const [b, bPlaces] = fraction(stated);
  return a * denominator * 10n ** BigInt(bPlaces) === b * numerator * 10n ** BigInt(aPlaces);
}

async function reading(adapter: AnyCatalogueAdapter, expectCalls: (upstream: FakeUpstream) => void) {
  await using upstream = await fakeUpstream();
  expectCalls(upstream);
  const items: CatalogueItem[] = await readCatalogue(adapter, upstream.url);
  const offers = items.flatMap((item) => (item.kind === 'offer' ? [item.offer] : []));
  const byName = new Map(offers.map((offer) => [`${offer.name} ${offer.regionCode}`, offer]));
  const prices = new Map<string, string | undefined>(
    items.flatMap((item) =>
      item.kind === 'region-price'
        ? [[`${item.price.item} ${item.price.name} ${item.regionCode}`, item.price.tiers[0]?.amount] as const]
        : [],
    ),
  );
  const traffic = (key: string) => byName.get(key)?.facts?.includedTraffic;
  return { offers, cap: (key: string) => byName.get(key)?.monthlyCap, traffic, prices };
}
const picked = <T>(rows: readonly T[], seed: number): T[] => {
  const random = randomFrom(seed);
  return Array.from({ length: 100 }, () => rows[Math.floor(random() * rows.length)] as T);
};

const stated = [
  { kind: 'small', payloads: WRITTEN, options: {} },
  { kind: 'recorded', payloads: RECORDED, options: needsRecorded },
];
for (const { kind, payloads, options } of stated)
  describe(`${kind} caps`, options, () => {
    const { json, raw } = payloads;

    it('of Hetzner are those of its payload, and traffic has the price of 1024 GiB', async () => {
      const query = { page: '1', per_page: '50' };
      const found = await reading(hetzner, (upstream) => {
        upstream.expect({ path: '/v1/locations', query }, raw('hetzner/locations.json'));
        upstream.expect({ path: '/v1/server_types', query }, raw('hetzner/server_types.json'));
        hetznerPricing(upstream);
      });
      const types: { name: string; prices: Record<string, { net: string } & string>[] }[] =
        json('hetzner/server_types.json').server_types;
      const rows = types.flatMap(({ name, prices }) => prices.map((price) => ({ name, price })));
      for (const { name, price } of picked(rows, 1)) {
        expect(isExactly(found.cap(`${name} ${price.location}`), price.price_monthly?.net ?? '')).toBe(true);
        const perGib = found.prices.get(`traffic_out traffic ${price.location}`);
        expect(isExactly(perGib, price.price_per_tb_traffic?.net ?? '', 1n, 1024n)).toBe(true);
        // Bytes, as GB to the nearest MB.
        const included = Number(price.included_traffic) / 1e9;
        expect(found.traffic(`${name} ${price.location}`)).toBeCloseTo(included, 3);
      }
    });

    it('of Linode are those of its payload, by region', async () => {
      const first = { page: '1' };
      const found = await reading(linode, (upstream) => {
        upstream.expect({ path: '/v4/regions', query: first }, raw('linode/regions.json'));
        upstream.expect({ path: '/v4/linode/types', query: first }, raw('linode/types.json'));
        for (const [index, page] of payloads.availability().entries())
          upstream.expect(
            { path: '/v4beta/regions/availability', query: { page: String(index + 1) } },
            raw(page),
          );
        linodePrices(upstream);
      });
      type Rate = { id: string; monthly: number };
      const types = new Map<string, { price: Rate; region_prices: Rate[]; transfer: number }>(
        json('linode/types.json').data.map((type: { id: string }) => [type.id, type]),
      );
      for (const { name, regionCode } of picked(found.offers, 2)) {
        const type = types.get(name) ?? expect.unreachable(name);
        const { monthly } = type.region_prices.find(({ id }) => id === regionCode) ?? type.price;
        expect(isExactly(found.cap(`${name} ${regionCode}`), monthly)).toBe(true);
        expect(found.traffic(`${name} ${regionCode}`)).toBe(type.transfer);
      }
    });

    it('of Vultr are those of its payload', async () => {
      const query = { per_page: '500' };
      const found = await reading(vultr, (upstream) => {
        upstream.expect({ path: '/v2/regions', query }, raw('vultr/regions.json'));
        upstream.expect({ path: '/v2/plans', query: { type: 'all', ...query } }, raw('vultr/plans.json'));
      });
      const plans: { id: string; monthly_cost: number; bandwidth: number }[] = json('vultr/plans.json').plans;
      for (const { name, regionCode } of picked(found.offers, 3)) {
        const plan = plans.find(({ id }) => id === name) ?? expect.unreachable(name);
        expect(isExactly(found.cap(`${name} ${regionCode}`), plan.monthly_cost)).toBe(true);
        expect(found.traffic(`${name} ${regionCode}`)).toBe(plan.bandwidth);
      }
    });
  });

describe('100 generated values', () => {
  const random = randomFrom(4);
  const amounts = Array.from({ length: 100 }, () => (random() * 100).toFixed(1 + Math.floor(random() * 5)));
  const codes = amounts.map((_, index) => `r${index}`);

  it('of DigitalOcean are its caps', async () => {
    const query = { page: '1', per_page: '200' };
    const sizes = amounts.map((price_monthly, index) => {
      const size = { memory: 1024, vcpus: 1, regions: ['nyc3'], available: true, price_hourly: 0.01 };
      return { ...size, slug: `s${index}`, price_monthly, transfer: index / 2 };
    });
    const regions = [{ slug: 'nyc3', name: 'New York 3', available: true }];
    const found = await reading(digitalocean, (upstream) => {
      upstream.expect({ path: '/v2/regions', query }, { json: { regions, meta: { total: 1 } } });
      upstream.expect({ path: '/v2/sizes', query }, { json: { sizes, meta: { total: 100 } } });
    });
    for (const [index, stated] of amounts.entries()) {
      expect(isExactly(found.cap(`s${index} nyc3`), stated)).toBe(true);
      // 500 GiB for each half of a TB.
      expect(found.traffic(`s${index} nyc3`)).toBeCloseTo((index * 500 * 2 ** 30) / 1e9, 3);
    }
  });

  it('of UpCloud are cents for storage, addresses and traffic', async () => {
    const zone = codes.map((id) => ({ id, description: id, public: 'yes' }));
    const plan = [{ name: '1xCPU-1GB', core_number: 1, memory_amount: 1024 }];
    const price = codes.map((name, index) => {
      const stated = { amount: 1, price: amounts[index] };
      const fields = [
        'storage_maxiops',
        'ipv4_address',
        'public_ipv4_bandwidth_out',
        'server_plan_1xCPU-1GB',
      ];
      return { name, ...Object.fromEntries(fields.map((field) => [field, stated])) };
    });
    const { prices } = await reading(upcloud, (upstream) => {
      upstream.expect({ path: '/1.3/zone' }, { json: { zones: { zone } } });
      upstream.expect({ path: '/1.3/plan' }, { json: { plans: { plan } } });
      upcloudDatabases(upstream);
      upstream.expect({ path: '/1.3/price' }, { json: { prices: { currency: 'EUR', zone: price } } });
    });
    for (const [index, stated] of amounts.entries())
      for (const name of [
        'block_storage maxiops',
        'ipv4 ipv4_address',
        'traffic_out public_ipv4_bandwidth_out',
      ])
        expect(isExactly(prices.get(`${name} ${codes[index]}`), stated, 1n, 100n)).toBe(true);
  });

  it('of Scaleway are whole units and billionths for a GB and an hour', async () => {
    const zones = ['fr-par-1', 'nl-ams-1', 'pl-waw-1', 'it-mil-1'];
    const stated = zones.flatMap((zone) =>
      codes.slice(0, 25).map((code) => {
        return {
          zone,
          name: `volume-${code}`,
          units: Math.floor(random() * 3),
          nanos: Math.floor(random() * 1e9),
        };
      }),
    );
    const volumes = stated.map(({ zone, name, units, nanos }) => ({
      sku: `/storage/block/${name}/${zone}`,
      locality: { zone },
      price: { retail_price: { currency_code: 'EUR', units, nanos } },
      unit_of_measure: { unit: 'gigabyte', size: 1 },
    }));
    const { prices } = await reading(scaleway, (upstream) => {
      const query = { product_types: 'block_storage', page: '1', page_size: '100' };
      const answer = { json: { products: volumes, total_count: volumes.length } };
      upstream.expect({ path: '/product-catalog/v2alpha1/public-catalog/products', query }, answer);
      scalewayZones(upstream, {}, {}, zones);
    });
    for (const { zone, name, units, nanos } of stated) {
      const billionths = BigInt(units) * 10n ** 9n + BigInt(nanos);
      expect(isExactly(prices.get(`block_storage ${name} ${zone}`), String(billionths), 1n, 10n ** 9n)).toBe(
        true,
      );
    }
  });

  it('of OVH are hundred-millionths for an hour', async () => {
    const pricing = (price: number) => [{ price, intervalUnit: 'hour', capacities: ['consumption'] }];
    const technical = { cpu: { cores: 2 }, memory: { size: 8 } };
    const machine = {
      planCode: 'b3-8.consumption',
      product: 'publiccloud-instance',
      pricings: pricing(5_080_000),
      configurations: [{ name: 'region', values: codes }],
      blobs: { tags: ['active'], technical },
    };
    const stated = codes.map(() => 1 + Math.floor(random() * 1e6));
    const volumes = codes.map((code, index) => ({
      planCode: `volume.classic.consumption.${code}`,
      product: 'publiccloud-volume-classic',
      pricings: pricing(stated[index] ?? 0),
      configurations: [{ name: 'region', values: [code] }],
    }));
    const { prices } = await reading(ovh, (upstream) => {
      const query = { ovhSubsidiary: 'IE' };
      const catalog = { locale: { currencyCode: 'EUR' }, addons: [machine, ...volumes] };
      upstream.expect({ path: '/v1/order/catalog/public/cloud', query }, { json: catalog });
      const rules = { plans: [{ code: 'other', regions: ['GRA9'] }] };
      upstream.expect({ path: '/v1/cloud/order/rule/availability', query }, { json: rules });
    });
    for (const [index, code] of codes.entries())
      expect(isExactly(prices.get(`block_storage classic ${code}`), stated[index] ?? 0, 1n, 10n ** 8n)).toBe(
        true,
      );
  });
});
