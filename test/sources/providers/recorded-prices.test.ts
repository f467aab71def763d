/**
 * Prices of Oracle, Exoscale, STACKIT and Vultr, compared with an independent calculation from the payload in whole numbers: a small
 * payload, and a recorded one where it exists.
 */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { OfferedRegionPrice } from '../../../src/domain/prices/region-price.ts';
import { adapter as exoscale } from '../../../src/sources/providers/exoscale.ts';
import { adapter as oracle } from '../../../src/sources/providers/oracle.ts';
import { adapter as stackit } from '../../../src/sources/providers/stackit.ts';
import { adapter as vultr } from '../../../src/sources/providers/vultr.ts';
import type { AnyCatalogueAdapter, CatalogueItem } from '../../../src/sources/source.ts';
import { type FakeUpstream, fakeUpstream } from '../../support/fake-upstream.ts';
import { needsRecorded, RECORDED } from '../../support/payloads.ts';
import { readCatalogue } from './read-catalogue.ts';

const COUNT = 100;
const PLACES = 30;

/** A decimal in units of 10^-30. */
function units(decimal: string | number): bigint {
  const [whole = '', part = ''] = String(decimal).split('.');
  return BigInt(whole + part.padEnd(PLACES, '0').slice(0, PLACES));
}

/** Whole numbers from 0 to below `most`, the same in each run. */
function numbersFrom(seed: number): (most: number) => number {
  let state = seed;
  return (most) => {
    state = (state * 48_271) % 2_147_483_647;
    return state % most;
  };
}

async function itemsOf(
  adapter: AnyCatalogueAdapter,
  expectCalls: (upstream: FakeUpstream) => void,
  path = '',
): Promise<readonly CatalogueItem[]> {
  await using upstream = await fakeUpstream();
  expectCalls(upstream);
  const token = adapter.credentials === 'exo2-hmac-sha256' ? 'EXO1:secret' : undefined;
  return await readCatalogue(adapter, upstream.url + path, token);
}

const offersOf = (items: readonly CatalogueItem[]) =>
  items.flatMap((item) => (item.kind === 'offer' ? [item.offer] : []));
const pricesOf = (items: readonly CatalogueItem[]) =>
  new Map<string, OfferedRegionPrice>(
    items.flatMap((item) =>
      item.kind === 'region-price'
        ? [[`${item.price.item} ${item.price.name}@${item.regionCode}`, item.price] as const]
        : [],
    ),
  );
const small = (path: string) =>
  JSON.parse(readFileSync(new URL(`../../fixtures/${path}`, import.meta.url), 'utf8'));

const KINDS = [
  { kind: 'small', payload: (written: string, _: string) => small(written), options: {} },
  {
    kind: 'recorded',
    payload: (_: string, recorded: string) => RECORDED.json(`next/${recorded}`),
    options: needsRecorded,
  },
];
for (const { kind, payload, options } of KINDS)
  describe(`in a ${kind} payload`, options, () => {
    it('machines of Oracle cost their OCPUs and their memory, and half of it if they are preemptible', async () => {
      interface Product {
        readonly partNumber: string;
        readonly displayName: string;
        readonly metricName: string;
        readonly currencyCodeLocalizations: {
          readonly prices: { readonly value: number; readonly rangeMin?: number }[];
        }[];
      }
      const products: Product[] = payload(
        'oracle/products.json',
        'spot-and-prices/oracle-apexapps-products-usd.json',
      ).items;
      /** The last step of a price by quantity: the first one may be free. */
      const priceOf = ({ currencyCodeLocalizations: [local] }: Product) => local?.prices.at(-1)?.value ?? 0;
      const compute = products.filter(
        (each) => each.displayName.startsWith('Compute - ') && priceOf(each) > 0,
      );
      const cores = compute.filter(({ metricName }) => metricName === 'OCPU Per Hour');
      const memories = compute.filter(({ metricName }) => metricName === 'Gigabyte Per Hour');
      const number = numbersFrom(7);
      const expected = new Map<string, readonly [total: bigint, isPreemptible: boolean]>();
      const items = Array.from({ length: COUNT }, (_, i) => {
        const [core, memory] = [cores[number(cores.length)], memories[number(memories.length)]];
        if (!core || !memory) return expect.unreachable('no parts');
        const [ocpus, gigabytes, isPreemptible] = [number(16) + 1, number(120) + 1, number(2) === 1];
        const name = `VM.Test${i}`;
        const total = units(priceOf(core)) * BigInt(ocpus) + units(priceOf(memory)) * BigInt(gigabytes);
        expected.set(name, [total, isPreemptible]);
        const product = (type: string, { partNumber }: Product, qty: number) => ({
          partNumber,
          qty,
          type: { value: type },
        });
        return {
          ...{
            name,
            hidden: false,
            status: 'ACTIVE',
            shapeType: { value: 'vm' },
            processorType: { value: 'amd' },
          },
          allowPreemptible: isPreemptible,
          products: [product('ocpu', core, ocpus), product('memory', memory, gigabytes)],
        };
      });
      const data = '/a/ocom/docs/cloudestimator2/data';
      const found = await itemsOf(
        oracle,
        (upstream) => {
          upstream.expect({ path: `${data}/shapes.json` }, { json: { items } });
          upstream.expect(
            { path: '/pls/apex/cetools/api/v1/products/', query: { currencyCode: 'USD' } },
            { json: { items: products } },
          );
        },
        data,
      );
      const offers = offersOf(found);
      expect(offers).toHaveLength(COUNT);
      for (const { name, price, terms } of offers) {
        const [total = 0n, isPreemptible] = expected.get(name) ?? [];
        expect([units(price.amount), price.per]).toEqual([total, 'hour']);
        const spot = terms?.spot?.price.amount;
        expect(spot === undefined ? undefined : units(spot) * 2n).toBe(isPreemptible ? total : undefined);
      }
      const byPart = new Map(products.map((product) => [product.partNumber, product]));
      const amountOf = (part: string) => units(priceOf(byPart.get(part) ?? expect.unreachable(part)));
      const prices = pricesOf(found);
      for (const [name, level] of [
        ['lower_cost', 0n],
        ['balanced', 10n],
        ['higher_performance', 20n],
      ] as const) {
        const volume = prices.get(`block_storage ${name}@commercial`);
        expect(units(volume?.tiers[0]?.amount ?? '')).toBe(amountOf('B91961') + amountOf('B91962') * level);
        expect([volume?.per, volume?.isDefault]).toEqual(['month', name === 'balanced']);
      }
      for (const part of ['B88327', 'B93455', 'B93456']) {
        const steps = byPart.get(part)?.currencyCodeLocalizations[0]?.prices ?? [];
        const same = [...prices.values()].some(
          ({ item, tiers }) =>
            item === 'traffic_out' &&
            tiers.length === steps.length &&
            steps.every(({ value, rangeMin = 0 }) =>
              tiers.some(({ from, amount }) => Number(from) === rangeMin && units(amount) === units(value)),
            ),
        );
        expect([part, same]).toEqual([part, true]);
      }
    });

    it('all machines, disks, addresses and traffic of Exoscale have the prices in euros', async () => {
      const { eur }: { eur: Readonly<Record<string, string>> } = payload(
        'exoscale/opencompute.json',
        'spot-and-prices/exoscale-pricing-opencompute.json',
      );
      const SIZE = /(?:extra_large|[a-z0-9]+)$/;
      const charged = Object.keys(eur).filter((key) => key.startsWith('running_'));
      const rows = charged.map((key) => {
        const rest = key.replace('running_', '');
        const size = SIZE.exec(rest)?.[0] ?? '';
        const family = rest.slice(0, -size.length).replace(/_$/, '') || 'standard';
        return { key, family: family.replace('gpu_', 'gpu'), size: size.replace('_', '-') };
      });
      const types = rows.map((row) => ({ ...row, cpus: 2, memory: 4 * 2 ** 30, zones: ['ch-gva-2'] }));
      // Other currencies have the same numbers in the payload, and others here.
      const wrong = Object.fromEntries(Object.keys(eur).map((key) => [key, '7']));
      const found = await itemsOf(exoscale, (upstream) => {
        upstream.expect({ path: '/v2/zone' }, { json: { zones: [{ name: 'ch-gva-2' }] } });
        upstream.expect({ path: '/v2/instance-type' }, { json: { 'instance-types': types } });
        upstream.expect({ path: '/api/pricing/opencompute' }, { json: { chf: wrong, eur, usd: wrong } });
      });
      const offers = offersOf(found);
      expect(offers).toHaveLength(charged.length);
      for (const { key, family, size } of rows) {
        const offer = offers.find(({ name }) => name === `${family}.${size}`);
        expect([key, offer && units(offer.price.amount)]).toEqual([key, units(eur[key] ?? '')]);
        expect(offer?.price).toMatchObject({ per: 'hour', currency: 'EUR' });
      }
      const prices = pricesOf(found);
      const NAMES = {
        volume: 'block_storage volume',
        volume_data: 'block_storage volume_data',
        eip_address: 'ipv4 eip_address',
        traffic: 'traffic_out traffic',
      };
      for (const [key, name] of Object.entries(NAMES))
        expect(units(prices.get(`${name}@ch-gva-2`)?.tiers[0]?.amount ?? '')).toBe(units(eur[key] ?? ''));
      expect(prices.size).toBe(4);
    });

    it('all services of STACKIT cost a 720th of their month', async () => {
      interface Service {
        readonly name: string;
        readonly product: string;
        readonly region: string;
        readonly price: string;
        readonly deprecated: string;
        readonly priceListVisibility: string;
        readonly unitBilling: string;
        readonly generalProductGroup: string;
        readonly attributes: {
          readonly flavor?: string | null;
          readonly metro?: boolean;
          readonly os?: string | null;
          readonly nodes?: number;
          readonly vCPU?: number;
        };
      }
      const services: Service[] = payload(
        'stackit/skus.json',
        'stackit-otc/stackit-pim-v1-skus.json',
      ).services;
      const found = await itemsOf(stackit, (upstream) => {
        upstream.expect({ path: '/v1/skus' }, { json: { services } });
      });
      const offers = offersOf(found);
      const prices = pricesOf(found);
      const plans = found.flatMap((item) => (item.kind === 'database-plan' ? [item] : []));
      const isSold = ({ deprecated, priceListVisibility }: Service) =>
        deprecated === 'No' && priceListVisibility === 'Yes';
      let compared = 0;
      for (const service of services.filter(isSold)) {
        const { product, name, region, price, attributes, unitBilling, generalProductGroup } = service;
        const place = attributes.metro ? `${region}-m` : region;
        let amount: string | undefined;
        if (product === 'Server' && !attributes.os && Number.isInteger(attributes.vCPU))
          amount = offers.find((each) => each.name === attributes.flavor && each.regionCode === place)?.price
            .amount;
        else if (product === 'PostgreSQL Flex') {
          const plan = plans.find((each) => name.startsWith(each.plan.name) && each.regionCode === region);
          expect(plan?.plan.nodes).toBe(attributes.nodes);
          amount = plan?.plan.price.amount;
        } else if (unitBilling === 'per GB/hour' && generalProductGroup === 'Block Storage')
          amount = prices.get(`block_storage capacity@${place}`)?.tiers[0]?.amount;
        else if (product === 'Public IP Address')
          amount = prices.get(`ipv4 ipv4@${region}`)?.tiers[0]?.amount;
        else continue;
        compared += 1;
        expect([name, units(amount ?? '')]).toEqual([name, units(price)]);
        // The payload also states the price of 720 hours.
        const { monthlyPrice } = service as unknown as { readonly monthlyPrice: string };
        if (monthlyPrice !== '0')
          expect([name, units(amount ?? '') * 720n]).toEqual([name, units(monthlyPrice)]);
      }
      expect(compared).toBe(offers.length + prices.size + plans.length);
    });
  });

describe('preemptible plans of Vultr', () => {
  interface Plan {
    readonly id: string;
    readonly hourly_cost: number;
    readonly hourly_cost_preemptible: number;
  }
  const read = async (plans: readonly object[]) => {
    const query = { per_page: '500' };
    const regions = ['ams', 'ewr'].map((id) => ({ id, city: id, country: 'NL' }));
    const meta = (total: number) => ({ total, links: { next: '', prev: '' } });
    const items = await itemsOf(vultr, (upstream) => {
      upstream.expect({ path: '/v2/regions', query }, { json: { regions, meta: meta(2) } });
      upstream.expect(
        { path: '/v2/plans', query: { type: 'all', ...query } },
        { json: { plans, meta: meta(plans.length) } },
      );
    });
    expect(items.filter(({ kind }) => kind === 'rejected')).toEqual([]);
    return offersOf(items);
  };

  it(`have ${COUNT} generated spot prices, by region, if they can be deployed as preemptible`, async () => {
    const number = numbersFrom(11);
    const cents = () => (number(90_000) + 1) / 1000;
    const plans = Array.from({ length: COUNT }, (_, i) => ({
      ...{ id: `vc2-${i}`, vcpu_count: 2, ram: 4096, type: 'vc2', locations: ['ams', 'ewr'] },
      ...{ hourly_cost: cents(), hourly_cost_preemptible: cents(), deploy_preemptible: number(3) > 0 },
      location_cost: number(2) ? { ewr: { hourly_cost: cents(), hourly_cost_preemptible: cents() } } : [],
    }));
    const offers = await read(plans);
    expect(offers).toHaveLength(2 * COUNT);
    for (const { name, regionCode, terms } of offers) {
      const plan = plans.find(({ id }) => id === name) ?? expect.unreachable(name);
      const own = 'ewr' in plan.location_cost && regionCode === 'ewr' ? plan.location_cost.ewr : plan;
      const spot = terms?.spot?.price.amount;
      const stated = plan?.deploy_preemptible ? own?.hourly_cost_preemptible : undefined;
      expect(spot === undefined ? undefined : units(spot)).toBe(stated && units(stated));
    }
  });

  it('have the recorded prices of bare metal', needsRecorded, async () => {
    const metal: Plan[] = RECORDED.json(
      'next/spot-and-prices/vultr-plans-metal-preemptible.json',
    ).plans_metal;
    // The recorded rows lack these fields of plans.
    const rest = { vcpu_count: 2, ram: 4096, type: 'vbm', locations: ['ams'], deploy_preemptible: true };
    const offers = await read(metal.map((plan) => ({ ...plan, ...rest })));
    expect(offers).toHaveLength(2 * metal.length);
    for (const { name, terms } of offers) {
      const plan = metal.find(({ id }) => id === name);
      expect(terms?.spot?.price).toEqual({
        amount: String(plan?.hourly_cost_preemptible),
        per: 'hour',
        currency: 'USD',
      });
    }
  });
});
