import { beforeAll, describe, expect, it } from 'vitest';
import { openSourceHttp } from '../../../src/sources/http/http.ts';
import { adapter } from '../../../src/sources/providers/gcp.ts';
import type { CatalogueItem } from '../../../src/sources/source.ts';
import { fakeUpstream } from '../../support/fake-upstream.ts';
import { needsRecorded, RECORDED, WRITTEN } from '../../support/payloads.ts';
import { gcpDatabases } from '../../support/provider-answers.ts';

const PROJECT = '/compute/v1/projects/fleet';
const IOWA = 'us-central1';
const e2 = { name: 'e2-standard-2', guestCpus: 2, memoryMb: 8192, isSharedCpu: false };

/** One page of types by zone and one of SKUs. */
async function itemsOf(
  zones: Readonly<Record<string, readonly object[]>>,
  skus: readonly object[],
): Promise<CatalogueItem[]> {
  await using upstream = await fakeUpstream();
  const items = Object.fromEntries(
    Object.entries(zones).map(([zone, machineTypes]) => [`zones/${zone}`, { machineTypes }]),
  );
  upstream.expect(
    {
      path: `${PROJECT}/aggregated/machineTypes`,
      query: { maxResults: '500', returnPartialSuccess: 'true' },
    },
    { json: { items } },
  );
  const query = { currencyCode: 'USD', pageSize: '5000' };
  upstream.expect({ path: '/v1/services/6F81-5844-456A/skus', query }, { json: { skus, nextPageToken: '' } });
  gcpDatabases(upstream);
  const http = openSourceHttp({
    baseUrl: upstream.url + PROJECT,
    credentials: 'bearer',
    token: 'token',
    deadlineMs: 10_000,
    maxBytes: 20_000_000,
  });
  const found: CatalogueItem[] = [];
  for await (const item of adapter.catalogue({ http, now: () => new Date('2026-03-01T00:00:00Z') }))
    found.push(item);
  return found;
}

interface RecordedType {
  readonly name: string;
  readonly zones: readonly string[];
  readonly specs: {
    guestCpus: number;
    memoryMb: number;
    isSharedCpu: boolean;
    accelerators: object[] | null;
  };
}
interface RecordedSku {
  description: string;
  pricingInfo: {
    currencyConversionRate: number;
    pricingExpression: {
      tieredRates: { unitPrice: { currencyCode: string; units: string; nanos: number } }[];
    };
  }[];
}

const written = {
  kind: 'small',
  payloads: WRITTEN,
  withoutPrice: 2,
  e2Standard2: '0.064',
  e2Micro: '0.008',
  t2d: '0.0524',
  listed: 5,
  options: {},
};
const recorded = {
  kind: 'recorded',
  payloads: RECORDED,
  withoutPrice: 22,
  e2Standard2: '0.06701142',
  e2Micro: '0.0083764275',
  t2d: '0.052117',
  listed: 541,
  options: needsRecorded,
};

for (const expected of [written, recorded])
  describe(`the ${expected.kind} catalogue of GCP`, expected.options, () => {
    const read = (name: string) => expected.payloads.json(`gcp/${name}`);
    let types: RecordedType[] = [];
    let skus: RecordedSku[] = [];
    let listed: Record<string, number> = {};
    const byZone: Record<string, object[]> = {};
    /** The SKUs, converted from rupiah to dollars, to the nanodollar. */
    let inDollars: RecordedSku[] = [];
    // Not during collection, which also happens without the payloads.
    beforeAll(() => {
      types = read('compute-machine-types-568.json');
      ({ skus } = read('billing-skus-7.json'));
      listed = read('vm-pricing-541.json');
      for (const { name, zones, specs } of types) {
        const { guestCpus, memoryMb, isSharedCpu, accelerators } = specs;
        const type = { name, guestCpus, memoryMb, isSharedCpu, accelerators: accelerators ?? undefined };
        for (const zone of zones) byZone[zone] = [...(byZone[zone] ?? []), type];
      }
      inDollars = structuredClone(skus);
      for (const { pricingInfo } of inDollars) {
        for (const { currencyConversionRate, pricingExpression } of pricingInfo) {
          for (const { unitPrice } of pricingExpression.tieredRates) {
            const amount = (Number(unitPrice.units) + unitPrice.nanos / 1e9) / currencyConversionRate;
            unitPrice.units = String(Math.trunc(amount));
            unitPrice.nanos = Math.round((amount % 1) * 1e9);
            unitPrice.currencyCode = 'USD';
          }
        }
      }
    });

    it('lists the types of each zone on separate pages', async () => {
      const { items } = read('machineTypes-us-central1-a.json');
      const rows = await itemsOf({ 'us-central1-a': items }, inDollars);
      const a2 = rows.filter((row) => row.kind === 'offer');
      expect(a2).toMatchObject([
        { offer: { name: 'a2-highgpu-1g', cpu: 12, ram: 85, excluded: 'accelerated' } },
      ]);
      expect(rows.filter((row) => row.kind === 'rejected').map(({ key }) => key)).toHaveLength(
        expected.withoutPrice,
      );
    });

    it('prices the families whose SKUs are listed, in each of their regions and zones', async () => {
      const items = await itemsOf(byZone, inDollars);
      const offers = items.flatMap((item) => (item.kind === 'offer' ? [item.offer] : []));
      const priceOf = (name: string, regionCode: string) =>
        offers.find((offer) => offer.name === name && offer.regionCode === regionCode)?.price.amount;
      expect(priceOf('e2-standard-2', IOWA)).toBe(expected.e2Standard2);
      expect(priceOf('e2-micro', IOWA)).toBe(expected.e2Micro);
      expect(priceOf('a2-highgpu-1g', IOWA)).toBe('0.739477');
      expect(priceOf('t2d-standard-1', 'asia-southeast1')).toBe(expected.t2d);
      expect(new Set(offers.map(({ name }) => name.split('-')[0]))).toEqual(new Set(['e2', 'a2', 't2d']));
      expect(items.filter((item) => item.kind === 'region')).toHaveLength(
        new Set(Object.keys(byZone).map((zone) => zone.replace(/-[^-]+$/, ''))).size,
      );
      // Each type without an offer is named, in its region or once for all.
      const rejected = items.filter((item) => item.kind === 'rejected');
      for (const { name, zones } of types) {
        for (const regionCode of new Set(zones.map((zone) => zone.replace(/-[^-]+$/, '')))) {
          const isOffered = offers.some((offer) => offer.name === name && offer.regionCode === regionCode);
          const isNamed = rejected.some(
            (row) => row.name === name && (row.regionCode ?? regionCode) === regionCode,
          );
          expect([name, regionCode, isOffered !== isNamed]).toEqual([name, regionCode, true]);
        }
      }
    });

    it('is rejected if its prices are not in dollars', async () => {
      const items = await itemsOf({ 'us-central1-a': [e2] }, skus);
      expect(items).toContainEqual(
        expect.objectContaining({
          key: `e2-standard-2@${IOWA}`,
          reason: expect.stringMatching(
            /^SKU CF4E-A0C7-E3BF: .*currencyCode must be USD, as requested; it is "IDR"/,
          ),
        }),
      );
    });

    it('differs from the list of reference prices, which has one pair of rates for all families', async () => {
      const shapes = new Map(types.map(({ name, specs }) => [name, specs]));
      expect(Object.keys(listed)).toHaveLength(expected.listed);
      for (const [name, price] of Object.entries(listed)) {
        const { guestCpus = Number.NaN, memoryMb = Number.NaN } = shapes.get(name) ?? {};
        // Four decimal places, so half of the last one is rounding.
        expect(Math.abs(price - (0.0144 * guestCpus + 0.007293 * (memoryMb / 1024)))).toBeLessThan(0.0003);
      }
      const items = await itemsOf(byZone, inDollars);
      const offers = items.flatMap((item) => (item.kind === 'offer' ? [item.offer] : []));
      const ratios = offers.map(({ name, price }) => (listed[name] ?? Number.NaN) / Number(price.amount));
      expect(ratios.every((ratio) => Math.abs(ratio - 1) > 0.05)).toBe(true);
      // The list counts a shared core as two whole ones.
      expect(listed['e2-micro']).toBeGreaterThan(4 * Number(expected.e2Micro));
    });
  });
