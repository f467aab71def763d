import { describe, expect, it } from 'vitest';
import { limitBroken } from '../../../src/domain/machine.ts';
import { openSourceHttp } from '../../../src/sources/http/http.ts';
import { adapter } from '../../../src/sources/providers/aws.ts';
import type { CatalogueItem } from '../../../src/sources/source.ts';
import { type FakeAnswer, fakeUpstream } from '../../support/fake-upstream.ts';
import { needsRecorded, RECORDED, WRITTEN } from '../../support/payloads.ts';
import { ATTRIBUTES } from './aws-payloads.ts';

const indexOf = (offer: string) => `/offers/v1.0/aws/${offer}/current/region_index.json`;
const INDEX = indexOf('AmazonEC2');
/** Of the small offers, which list no region that is read here. */
const ELSEWHERE = {
  json: { regions: { elsewhere: { regionCode: 'elsewhere', currentVersionUrl: '/none' } } },
};
const SMALL = ['AWSDataTransfer', 'AmazonVPC'];
const REGION = 'us-east-2';

const attributes = {
  ...ATTRIBUTES,
  location: 'US East (Ohio)',
  locationType: 'AWS Region',
  instanceType: 'm7i.large',
  marketoption: 'OnDemand',
  regionCode: REGION,
};
const product = (changes: object = {}) => ({
  productFamily: 'Compute Instance',
  attributes: { ...attributes, ...changes },
});
const term = (USD: string, changes: object = {}, unit = 'Hrs') => ({
  effectiveDate: '2026-02-01T00:00:00Z',
  priceDimensions: { rate: { unit, beginRange: '0', pricePerUnit: { USD } } },
  termAttributes: {},
  ...changes,
});
const hourly = { term: term('0.1008000000') };

/** The region files, by region code. */
async function itemsOf(files: Readonly<Record<string, FakeAnswer>>): Promise<CatalogueItem[]> {
  await using upstream = await fakeUpstream();
  const codes = Object.keys(files);
  const regions = Object.fromEntries(
    codes.map((code) => [code, { regionCode: code, currentVersionUrl: `/files/${code}.json` }]),
  );
  upstream.expect({ path: INDEX }, { json: { regions } });
  for (const offer of SMALL) upstream.expect({ path: indexOf(offer) }, ELSEWHERE);
  // It is read after the machines, if there are any.
  upstream.expect({ path: indexOf('AmazonRDS'), times: 'any' }, ELSEWHERE);
  for (const [code, answer] of Object.entries(files)) {
    upstream.expect({ path: `/files/${code}.json`, times: 'any' }, answer);
  }
  const limits = { deadlineMs: 5_000, maxBytes: 100_000 };
  const http = openSourceHttp({ baseUrl: upstream.url, credentials: 'none', ...limits });
  const found: CatalogueItem[] = [];
  for await (const item of adapter.catalogue({ http, now: () => new Date('2026-03-01T00:00:00Z') }))
    found.push(item);
  return found;
}

/** Reads one type with these products and terms. */
async function rowsOf(products: object, terms: object): Promise<CatalogueItem[]> {
  const items = await itemsOf({ [REGION]: { json: { products, terms: { OnDemand: terms, Reserved: {} } } } });
  return items.filter((item) => item.kind !== 'region');
}

describe('an AWS type', () => {
  it.each([
    ['is offered', {}, undefined],
    ['of a previous generation is offered, since AWS still sells it', { currentGeneration: 'No' }, undefined],
    ['with a GPU is accelerated', { gpu: '1' }, 'accelerated'],
    ['without a GPU by number is not accelerated', { gpu: 'NA' }, undefined],
    ['of a family of GPUs is accelerated', { instanceFamily: 'GPU instance' }, 'accelerated'],
    ['of FPGAs is accelerated', { instanceFamily: 'FPGA Instances' }, 'accelerated'],
    ['of media chips is accelerated', { instanceFamily: 'Media Accelerator Instances' }, 'accelerated'],
  ])('%s', async (_, changes, excluded) => {
    const [item, ...more] = await rowsOf({ A: product(changes) }, { A: hourly });
    expect(more).toEqual([]);
    expect(item).toMatchObject({
      kind: 'offer',
      offer: { regionCode: REGION, name: 'm7i.large', cpu: 2, ram: 8, ramUnit: 'Binary' },
    });
    expect(item?.kind === 'offer' ? item.offer.excluded : 'rejected').toBe(excluded);
  });

  it.each([
    ['Windows', { operatingSystem: 'Windows' }],
    ['RHEL', { operatingSystem: 'RHEL' }],
    ['SQL Server on Linux', { preInstalledSw: 'SQL Std' }],
    ['a dedicated tenancy', { tenancy: 'Dedicated' }],
    ['a dedicated host', { tenancy: 'Host' }],
    ['an unused reservation', { capacitystatus: 'UnusedCapacityReservation' }],
    ['a used reservation', { capacitystatus: 'AllocatedCapacityReservation' }],
    ['a block of capacity', { operation: 'RunInstances:CB', marketoption: 'CapacityBlock' }],
    ['a rack at the customer’s site', { locationType: 'AWS Outposts' }],
    ['a local zone', { locationType: 'AWS Local Zone', regionCode: 'us-east-1-bos-1' }],
    ['a zone of a phone network', { locationType: 'AWS Wavelength Zone', regionCode: 'us-east-1-wl1' }],
  ])('has a row for %s, which does not price it', async (_, changes) => {
    const dear = { term: term('9.9000000000') };
    const rows = await rowsOf({ B: product(changes), A: product() }, { A: hourly, B: dear });
    expect(rows).toEqual([
      expect.objectContaining({
        offer: expect.objectContaining({ price: expect.objectContaining({ amount: '0.1008' }) }),
      }),
    ]);
  });

  it.each([
    ['the latest in force', { old: term('0.2', { effectiveDate: '2024-01-01T00:00:00Z' }) }, '0.1008'],
    ['not a future one', { next: term('0.09', { effectiveDate: '2026-04-01T00:00:00Z' }) }, '0.1008'],
    ['not a lease', { lease: term('0.05', { termAttributes: { LeaseContractLength: '1yr' } }) }, '0.1008'],
    ['not a fee', { fee: term('1161', {}, 'Quantity') }, '0.1008'],
    ['one without a date', { term: term('0.11', { effectiveDate: undefined }) }, '0.11'],
  ])('is priced by one of its terms: %s', async (_, terms, amount) => {
    const [row] = await rowsOf({ A: product() }, { A: { ...hourly, ...terms } });
    expect(row).toMatchObject({ kind: 'offer', offer: { price: { amount, per: 'hour', currency: 'USD' } } });
  });

  it.each([
    ['has no term', { A: product() }, { B: hourly }, 'terms.OnDemand has nothing for A'],
    [
      'has a price for another unit than the hour',
      { A: product() },
      { A: { term: term('70', {}, 'Mo') } },
      'A: no term is on demand',
    ],
    [
      'is priced in another currency',
      { A: product() },
      {
        A: { term: { ...term('1'), priceDimensions: { rate: { unit: 'Hrs', pricePerUnit: { CNY: '1' } } } } },
      },
      'A: term.priceDimensions.rate.pricePerUnit.USD is missing',
    ],
    [
      'has two prices at once',
      { A: product() },
      { A: { ...hourly, other: term('0.2') } },
      'A: several prices are in force: 0.1008, 0.2',
    ],
    [
      'is listed twice at different prices',
      { A: product(), B: product() },
      { A: hourly, B: { term: term('0.2') } },
      'has several prices: 0.1008 (A), 0.2 (B)',
    ],
    [
      'is listed twice with different shapes',
      { A: product(), B: product({ memory: '16 GiB' }) },
      { A: hourly, B: hourly },
      'has several shapes: 2 vCPU and 8 GiB, 2 vCPU and 16 GiB',
    ],
    [
      'has memory without a unit',
      { A: product({ memory: '8' }) },
      {},
      'must be a count of GiB such as "8 GiB"; it is "8"',
    ],
    [
      'has half a core',
      { A: product({ vcpu: '0.5' }) },
      {},
      'attributes.vcpu must be a whole number above 0; it is "0.5"',
    ],
    ['has no core', { A: product({ vcpu: '0' }) }, {}, 'attributes.vcpu must be a whole number above 0'],
    [
      'is of another region',
      { A: product({ regionCode: 'eu-west-1' }) },
      {},
      'must be us-east-2, whose file this is; it is eu-west-1',
    ],
  ])('is rejected by name when it %s', async (_, products, terms, reason) => {
    const ordinary = product({ instanceType: 't3.small' });
    const rows = await rowsOf({ ...products, Z: ordinary }, { ...terms, Z: hourly });
    expect(rows.filter((row) => row.kind === 'rejected')).toEqual([
      {
        kind: 'rejected',
        key: `m7i.large@${REGION}`,
        name: 'm7i.large',
        regionCode: REGION,
        reason: expect.stringContaining(reason),
      },
    ]);
    expect(rows.filter((row) => row.kind === 'offer')).toHaveLength(1);
  });

  // Attributes of the offer file of September 2026 in scttfrdmn/substrate at 158e698a.
  it('is none of the product of free trials, which is in every file and has no type', async () => {
    const trial = {
      productFamily: 'Compute Instance',
      attributes: {
        ...{ group: 'FreeTrial', location: 'Any', operation: 'RunInstances', regionCode: '' },
        usagetype: 'Global-BoxUsage:freetrial',
      },
    };
    const rows = await rowsOf({ F: trial, A: product() }, { F: hourly, A: hourly });
    expect(rows.map(({ kind }) => kind)).toEqual(['offer']);
  });

  it('that is listed twice at one price is one offer', async () => {
    expect(await rowsOf({ A: product(), B: product() }, { A: hourly, B: hourly })).toHaveLength(1);
  });

  it.each([
    ['1,952 GiB', 1952],
    ['0.613 GiB', 0.613],
    ['24,576 GiB', 24576],
  ])('has the memory of %s', async (memory, ram) => {
    const [row] = await rowsOf({ A: product({ memory }) }, { A: hourly });
    expect(row).toMatchObject({ kind: 'offer', offer: { ram, ramUnit: 'Binary' } });
  });
});

describe('an AWS region', () => {
  const file = { json: { products: { A: product() }, terms: { OnDemand: { A: hourly } } } };
  const other = {
    json: {
      products: { A: product({ regionCode: 'eu-west-1', location: 'Europe (Ireland)' }) },
      terms: { OnDemand: { A: hourly } },
    },
  };

  it('that cannot be read is held, while the others are reported', async () => {
    const items = await itemsOf({ [REGION]: { status: 503 }, 'eu-west-1': other });
    expect(items).toEqual([
      {
        kind: 'unread',
        regionCode: REGION,
        reason: expect.stringMatching(
          /\/files\/us-east-2\.json answers 503; its machines stay as they were$/,
        ),
      },
      { kind: 'region', code: 'eu-west-1', name: 'Europe (Ireland)' },
      expect.objectContaining({ kind: 'offer' }),
    ]);
  });

  it('whose file breaks off is held as a whole, whatever part of it arrived', async () => {
    const cutAfter = JSON.stringify(file.json).length - 2;
    for (const framing of ['length', 'chunked', 'close'] as const) {
      const items = await itemsOf({ [REGION]: { ...file, cutAfter, framing }, 'eu-west-1': other });
      expect(items.filter((item) => item.kind === 'offer').map(({ offer }) => offer.regionCode)).toEqual([
        'eu-west-1',
      ]);
    }
  });

  it('fails the run if it is the only one', async () => {
    await expect(itemsOf({ [REGION]: { ...file, cutAfter: 200 } })).rejects.toMatchObject({ kind: 'retry' });
    await expect(itemsOf({ [REGION]: { status: 404 } })).rejects.toMatchObject({ kind: 'gone' });
  });

  it('fails the run at once if the upstream requires a pause', async () => {
    const limited = { status: 429, headers: { 'retry-after': '60' } };
    const reading = itemsOf({ [REGION]: limited, 'eu-west-1': other });
    await expect(reading).rejects.toMatchObject({ kind: 'retry', retryAfterMs: 60_000 });
  });

  it('is invalid if its terms come before its products', async () => {
    const { products, terms } = file.json;
    await expect(itemsOf({ [REGION]: { json: { terms, products } } })).rejects.toMatchObject({
      kind: 'invalid',
      message: expect.stringContaining('terms before products'),
    });
  });

  it('in the index without a path to its file is held', async () => {
    await using upstream = await fakeUpstream();
    const regions = {
      [REGION]: { regionCode: REGION, currentVersionUrl: 'https://elsewhere.example/x.json' },
    };
    upstream.expect({ path: INDEX }, { json: { regions } });
    for (const offer of SMALL) upstream.expect({ path: indexOf(offer) }, ELSEWHERE);
    const limits = { deadlineMs: 5_000, maxBytes: 100_000 };
    const http = openSourceHttp({ baseUrl: upstream.url, credentials: 'none', ...limits });
    const items: CatalogueItem[] = [];
    const read = async () => {
      for await (const item of adapter.catalogue({ http, now: () => new Date() })) items.push(item);
    };
    await expect(read()).rejects.toMatchObject({ kind: 'invalid' });
    expect(items).toEqual([expect.objectContaining({ kind: 'unread', regionCode: REGION })]);
  });
});

const written = {
  kind: 'small',
  payloads: WRITTEN,
  leasedSku: 'LEASED',
  types: 4,
  within: 3,
  plain: 2,
  options: {},
};
const recorded = {
  kind: 'recorded',
  payloads: RECORDED,
  leasedSku: '8D49XP354UEYTHGM',
  types: 1373,
  within: 644,
  plain: 602,
  options: needsRecorded,
};

for (const expected of [written, recorded])
  describe(`the ${expected.kind} catalogue of AWS`, expected.options, () => {
    const excerpt = (number: number) => expected.payloads.raw(`aws/AmazonEC2-offer-excerpt-${number}.json`);

    it('prices an accelerated type once, next to a block of capacity at zero dollars', async () => {
      expect(await itemsOf({ 'us-east-1': excerpt(2) })).toEqual([
        { kind: 'region', code: 'us-east-1', name: 'US East (N. Virginia)' },
        {
          kind: 'offer',
          offer: {
            regionCode: 'us-east-1',
            name: 'p4d.24xlarge',
            cpu: 96,
            ram: 1152,
            ramUnit: 'Binary',
            price: { amount: '32.7726', per: 'hour', currency: 'USD' },
            facts: expect.objectContaining({ architecture: 'x86_64', generation: '4', network: 400_000 }),
            excluded: 'accelerated',
          },
        },
      ]);
    });

    it('never uses the fee of a lease as a price, nor Windows or storage as a machine', async () => {
      const items = await itemsOf({ [REGION]: excerpt(1) });
      expect(items.filter((item) => item.kind !== 'region')).toEqual([
        expect.objectContaining({
          kind: 'rejected',
          key: `m5.large@${REGION}`,
          reason: `${expected.leasedSku}: no term is on demand, in force and priced by the hour`,
        }),
        expect.objectContaining({
          kind: 'region-price',
          price: expect.objectContaining({
            name: 'gp3',
            per: 'month',
            tiers: [{ from: '0', amount: '0.08' }],
          }),
        }),
      ]);
    });

    it('is invalid without machines', async () => {
      await expect(itemsOf({ 'cn-northwest-1': excerpt(3) })).rejects.toMatchObject({
        kind: 'invalid',
        message: expect.stringContaining('lists nothing in products'),
      });
    });

    it(`has ${expected.types} types, ${expected.within} within the limits, ${expected.plain} of them without an accelerator`, async () => {
      interface Described {
        VCpuInfo: { DefaultVCpus: number };
        MemoryInfo: { SizeInMiB: number };
      }
      const described: Record<string, Described> = expected.payloads.json(
        'aws/DescribeInstanceTypes-all.json',
      );
      const products = Object.entries(described).map(([instanceType, type]) => {
        const accelerated = Object.keys(type).some((key) =>
          /^(Gpu|Fpga|InferenceAccelerator|Neuron|MediaAccelerator)Info$/.test(key),
        );
        return [
          instanceType,
          product({
            instanceType,
            vcpu: String(type.VCpuInfo.DefaultVCpus),
            memory: `${(type.MemoryInfo.SizeInMiB / 1024).toLocaleString('en-US', { maximumFractionDigits: 10 })} GiB`,
            instanceFamily: accelerated ? 'GPU instance' : 'General purpose',
          }),
        ];
      });
      const terms = Object.fromEntries(Object.keys(described).map((name) => [name, hourly]));
      const rows = await rowsOf(Object.fromEntries(products), terms);
      const offers = rows.flatMap((row) => (row.kind === 'offer' ? [row.offer] : []));
      const within = offers.filter((offer) => limitBroken(offer) === undefined);
      expect([rows.length, offers.length, within.length]).toEqual([
        expected.types,
        expected.types,
        expected.within,
      ]);
      expect(Map.groupBy(within, ({ excluded }) => excluded).get(undefined)).toHaveLength(expected.plain);
      // In decimal GB a third of them would be outside of the limits.
      const decimal = within.filter(
        ({ cpu, ram }) => ram * 1.073741824 <= 128 && ram * 1.073741824 <= 8 * cpu,
      );
      expect(decimal.length / within.length).toBeCloseTo(2 / 3, 1);
    });
  });
