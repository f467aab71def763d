/** Spot prices, commitments and prices of regions in Google's list of SKUs, with an own reading of the same payloads. */
import { describe, expect, it } from 'vitest';
import type { Offer } from '../../../src/domain/machine.ts';
import { openSourceHttp } from '../../../src/sources/http/http.ts';
import { adapter } from '../../../src/sources/providers/gcp.ts';
import type { CatalogueItem } from '../../../src/sources/source.ts';
import { fakeUpstream } from '../../support/fake-upstream.ts';
import { atoms, seeded } from './seeded.ts';

const PROJECT = '/compute/v1/projects/fleet';
const TAIWAN = 'asia-east1';

type Step = readonly [start: number, price: string];
const money = (price: string) => {
  const [units = '0', fraction = ''] = price.split('.');
  return { currencyCode: 'USD', units, nanos: Number(fraction.padEnd(9, '0')) };
};
const sku = (
  usageType: string,
  description: string,
  usageUnit: string,
  steps: readonly Step[],
  changes: object = {},
) => ({
  skuId: description,
  description,
  category: { usageType },
  serviceRegions: [TAIWAN],
  pricingInfo: [
    {
      pricingExpression: {
        usageUnit,
        tieredRates: steps.map(([startUsageAmount, price]) => ({
          startUsageAmount,
          unitPrice: money(price),
        })),
      },
    },
  ],
  ...changes,
});
const pair = (usage: string, [cpu, ram]: readonly [string, string], names: readonly [string, string]) => [
  sku(usage, names[0], 'h', [[0, cpu]]),
  sku(usage, names[1], 'GiBy.h', [[0, ram]]),
];
const onDemand = (family: string, rates: readonly [string, string] = ['0.02525446', '0.00338606']) =>
  pair('OnDemand', rates, [
    `${family} Instance Core running in APAC`,
    `${family} Instance Ram running in APAC`,
  ]);
const spot = (family: string, rates: readonly [string, string]) =>
  pair('Preemptible', rates, [
    `Spot Preemptible ${family} Instance Core running in APAC`,
    `Spot Preemptible ${family} Instance Ram running in APAC`,
  ]);
/** @param named the name of the family in a commitment, with a blank; N1 has none */
const commitment = (years: 1 | 3, named: string, rates: readonly [string, string]) => {
  const term = years === 1 ? '1 Year' : '3 Years';
  return pair(`Commit${years}Yr`, rates, [
    `Commitment v1: ${named}Cpu in APAC for ${term}`,
    `Commitment v1: ${named}Ram in APAC for ${term}`,
  ]);
};

const type = (name: string, guestCpus: number, gib: number, changes: object = {}) => ({
  name,
  guestCpus,
  memoryMb: gib * 1024,
  isSharedCpu: false,
  ...changes,
});

async function read(machineTypes: readonly object[], skus: readonly object[], region = TAIWAN) {
  await using upstream = await fakeUpstream();
  const items = { [`zones/${region}-a`]: { machineTypes } };
  const query = { maxResults: '500', returnPartialSuccess: 'true' };
  upstream.expect({ path: `${PROJECT}/aggregated/machineTypes`, query }, { json: { items } });
  upstream.expect(
    { path: '/v1/services/6F81-5844-456A/skus', query: { currencyCode: 'USD', pageSize: '5000' } },
    { json: { skus, nextPageToken: '' } },
  );
  const limits = { deadlineMs: 5_000, maxBytes: 10_000_000 };
  const http = openSourceHttp({
    baseUrl: upstream.url + PROJECT,
    credentials: 'bearer',
    token: 'token',
    ...limits,
  });
  const found: CatalogueItem[] = [];
  for await (const item of adapter.catalogue({ http, now: () => new Date('2026-03-01T00:00:00Z') }))
    found.push(item);
  return {
    offers: found.flatMap((item): Offer[] => (item.kind === 'offer' ? [item.offer] : [])),
    problems: found.flatMap((item) => (item.kind === 'rejected' ? [item.reason] : [])),
    prices: found.flatMap((item) => (item.kind === 'region-price' ? [item.price] : [])),
  };
}

const E2 = [type('e2-standard-2', 2, 8)];
const amountsOf = ({ terms = {} }: Offer) =>
  Object.fromEntries(Object.entries(terms).map(([term, { price }]) => [term, price.amount]));

describe('a term of GCP', () => {
  // Rates of the SKUs in asia-east1, as the list of September 2026 states them (Spot: of March 2025). Dollars for a month of 730
  // hours: pricing.yml of Cyclenerd/google-cloud-pricing-cost-calculator at 0166a59e, generated from the same API on 2025-03-06.
  it.each([
    ['e2-highcpu-4', 4, 4, 33.44568, 52.68709884, 37.63364328],
    ['e2-highcpu-8', 8, 8, 66.89136, 105.37419768, 75.26728656],
    ['e2-highcpu-32', 32, 32, 267.56544, 421.49679072, 301.06914624],
    ['e2-highmem-2', 2, 16, 30.56072, 48.13910978, 34.3850805],
    ['e2-highmem-16', 16, 128, 244.48576, 385.11287824, 275.080644],
  ])('of %s costs as much as another program computes', async (name, cpus, gib, now, year, years) => {
    const { offers, problems } = await read(
      [type(name, cpus, gib)],
      [
        ...onDemand('E2'),
        ...spot('E2', ['0.0101', '0.001354']),
        ...commitment(1, 'E2 ', ['0.015910889', '0.002132638']),
        ...commitment(3, 'E2 ', ['0.011364921', '0.001523313']),
      ],
    );
    expect([offers.length, problems]).toEqual([1, []]);
    const found = offers.flatMap((offer) => Object.entries(amountsOf(offer)));
    const months = Object.fromEntries(
      found.map(([term, amount]) => [term, Number((Number(amount) * 730).toFixed(8))]),
    );
    expect(months).toEqual({ spot: now, reserved_1y: year, reserved_3y: years });
  });

  it.each([
    ['n1-standard-2', 'N1 Predefined', ''],
    ['n2d-standard-2', 'N2D AMD', 'N2D AMD '],
    ['c4a-standard-2', 'C4A Arm', 'C4A Arm '],
    ['m1-ultramem-2', 'Memory-optimized', 'Memory-optimized '],
    ['m3-ultramem-2', 'M3 Memory-optimized', 'M3 Memory-optimized '],
  ])('is that of the family of %s', async (name, family, committed) => {
    const others = [...spot(family, ['0.01', '0.001']), ...commitment(1, committed, ['0.02', '0.002'])];
    const { offers, problems } = await read([type(name, 2, 8)], [...onDemand(family), ...others]);
    expect([offers.map(amountsOf), problems]).toEqual([[{ spot: '0.028', reserved_1y: '0.056' }], []]);
  });

  it.each([
    [
      'custom machines',
      sku('Preemptible', 'Spot Preemptible E2 Custom Instance Core running in APAC', 'h', [[0, '9']]),
    ],
    [
      'sole tenancy',
      sku('Preemptible', 'Spot Preemptible E2 Sole Tenancy Instance Core running in APAC', 'h', [[0, '9']]),
    ],
    ['another usage', sku('OnDemand', 'Spot Preemptible E2 Instance Core running in APAC', 'h', [[0, '9']])],
    ['an amount of money', sku('Commit1Yr', 'Commitment - dollar based v1: GCE for 1 Year', 'h', [[0, '1']])],
    [
      'graphics cards',
      sku('Commit1Yr', 'Commitment v1: Nvidia L4 GPU running in APAC for 1 Year', 'h', [[0, '9']]),
    ],
    ['local disks', sku('Commit1Yr', 'Commitment v1: Local SSD in APAC for 1 Year', 'GiBy.mo', [[0, '9']])],
    [
      'another family',
      sku('Commit1Yr', 'Commitment v1: M4Ultramem224 Cpu in APAC for 1 Year', 'h', [[0, '9']]),
    ],
    [
      'another region',
      sku('Preemptible', 'Spot Preemptible E2 Instance Core running in Tokyo', 'h', [[0, '9']], {
        serviceRegions: ['asia-northeast1'],
      }),
    ],
  ])('is not that of %s', async (_, other) => {
    const { offers, problems } = await read(E2, [...onDemand('E2'), other]);
    expect([offers.map(amountsOf), problems]).toEqual([[{}], []]);
  });

  // Dollars an hour in us-central1, as Google's page of VM prices states them, with the rates of E2 that give its e2-standard-2 and
  // e2-highmem-2: https://cloud.google.com/compute/vm-instance-pricing.
  it.each([
    ['e2-micro', 1, '0.0052771495', '0.003769393'],
    ['e2-small', 2, '0.010554299', '0.007538786'],
    ['e2-medium', 4, '0.021108598', '0.015077572'],
  ])('of %s is for its share of a core', async (name, gib, year, years) => {
    const skus = [
      ...onDemand('E2', ['0.02181159', '0.00292353']),
      ...commitment(1, 'E2 ', ['0.013741302', '0.001841824']),
      ...commitment(3, 'E2 ', ['0.009815216', '0.001315589']),
    ];
    const { offers, problems } = await read([type(name, 2, gib, { isSharedCpu: true })], skus);
    expect([offers.map(amountsOf), problems]).toEqual([[{ reserved_1y: year, reserved_3y: years }], []]);
  });

  it.each([
    ['f1-micro', 'Micro Instance with burstable CPU'],
    ['g1-small', 'Small Instance with 1 VCPU'],
  ])('of %s, which has one price for the whole, is Spot alone', async (name, description) => {
    const skus = [
      sku('OnDemand', `${description} running in APAC`, 'h', [[0, '0.0076']]),
      sku('Preemptible', `Spot Preemptible ${description} running in APAC`, 'h', [[0, '0.0035']]),
      ...commitment(1, '', ['0.02', '0.002']),
    ];
    const { offers, problems } = await read([type(name, 1, 1, { isSharedCpu: true })], skus);
    expect([offers.map(amountsOf), problems]).toEqual([[{ spot: '0.0035' }], []]);
  });

  it.each([
    ['lacks the memory', spot('E2', ['0.01', '0.001']).slice(0, 1), 'no SKU prices the ram for spot'],
    ['has memory for nothing', spot('E2', ['0.01', '0']), 'a part of it costs nothing'],
    [
      'has two rates',
      [...spot('E2', ['0.01', '0.001']), ...spot('E2', ['0.02', '0.001'])],
      'SKUs disagree about its price: 0.01 and 0.02',
    ],
    [
      'is counted in other units',
      [
        spot('E2', ['0.01', '0.001'])[0] ?? {},
        sku('Preemptible', 'Spot Preemptible E2 Instance Ram running in APAC', 'GBy.h', [[0, '0.001']]),
      ],
      'usageUnit must be GiBy.h; it is "GBy.h"',
    ],
  ])('that %s is left out, and its machine is offered', async (_, others, reason) => {
    const { offers, problems } = await read(E2, [...onDemand('E2'), ...others]);
    expect(offers.map(({ price, terms }) => [price.amount, terms])).toEqual([['0.0775974', undefined]]);
    expect(problems).toEqual([expect.stringContaining(reason)]);
  });

  it('that is stated twice in agreement is one price', async () => {
    const twice = [...spot('E2', ['0.01', '0.001']), ...spot('E2', ['0.01', '0.001'])];
    expect((await read(E2, [...onDemand('E2'), ...twice])).offers.map(amountsOf)).toEqual([
      { spot: '0.028' },
    ]);
  });

  it('costs what an own calculation finds, for 100 types', async () => {
    const random = seeded(27);
    const rate = () => `0.0${String(random(10_000_000) + 1).padStart(8, '0')}`;
    const families = Array.from({ length: 10 }, (_, n) => `Q${n + 1}`);
    const skus = families.flatMap((family) => [
      ...onDemand(family, [rate(), rate()]),
      ...spot(family, [rate(), rate()]),
      ...commitment(1, `${family} `, [rate(), rate()]),
      ...commitment(3, `${family} `, [rate(), rate()]),
    ]);
    const types = Array.from({ length: 100 }, (_, n) =>
      type(`q${(n % 10) + 1}-standard-${n}`, random(64) + 1, random(512) + 1, {
        memoryMb: 256 * (random(2048) + 1),
      }),
    );
    const { offers, problems } = await read(types, skus.toReversed());
    expect(problems).toEqual([]);
    const nanos = (usage: string, family: string, part: RegExp) => {
      const found = skus.find(
        (each) =>
          each.category.usageType === usage &&
          part.test(each.description) &&
          new RegExp(`\\b${family}\\b`).test(each.description),
      );
      return BigInt(found?.pricingInfo[0]?.pricingExpression.tieredRates[0]?.unitPrice.nanos ?? 0);
    };
    let compared = 0;
    for (const { name, guestCpus, memoryMb } of types) {
      const offer = offers.find((each) => each.name === name);
      const family = name.split('-')[0]?.toUpperCase() ?? '';
      for (const [usage, term] of [
        ['Preemptible', 'spot'],
        ['Commit1Yr', 'reserved_1y'],
        ['Commit3Yr', 'reserved_3y'],
      ] as const) {
        const core = nanos(usage, family, / (Core|Cpu) /) * BigInt(guestCpus) * 1024n;
        const exact = core + nanos(usage, family, / Ram /) * BigInt(memoryMb);
        // In units of 10^-12 dollars and 1024ths, which an amount with more places than twelve exceeds.
        expect([name, term, atoms((offer?.terms?.[term]?.price.amount ?? '').slice(0, 14))]).toEqual([
          name,
          term,
          (exact * 1000n) / 1024n,
        ]);
        compared += 1;
      }
    }
    expect(compared).toBe(300);
  });
});

describe('a price of a region of GCP', () => {
  const traffic = (description: string, steps: readonly Step[]) =>
    sku('OnDemand', description, 'GiBy', steps);
  const shown = ({ prices }: Awaited<ReturnType<typeof read>>) =>
    prices.map(({ name, isDefault, tiers }) => [
      name,
      isDefault,
      tiers.map(({ from, amount }) => `${from}:${amount}`).join(' '),
    ]);

  it('of traffic is that of the Premium Tier to its own part of the world, else that of the Standard Tier', async () => {
    const standard = traffic('Network Standard Data Transfer Out to Internet from Taiwan', [
      [0, '0'],
      [200, '0.11'],
      [10240, '0.075'],
    ]);
    const china = traffic('Network Internet Data Transfer Out from Taiwan to China', [[0, '0.23']]);
    const near = traffic(
      'Network Internet Data Transfer Out from Taiwan to Apac(Excluding Korea and Indonesia)',
      [
        [0, '0.12'],
        [1024, '0.11'],
      ],
    );
    const vpn = traffic('Network Vpn Internet Data Transfer Out from Taiwan to APAC', [[0, '9']]);
    expect(shown(await read(E2, [...onDemand('E2'), standard, china, near, vpn]))).toEqual([
      ['Standard Tier', false, '0:0 200:0.11 10240:0.075'],
      ['Premium Tier to Apac(Excluding Korea and Indonesia)', true, '0:0.12 1024:0.11'],
    ]);
    expect(shown(await read(E2, [...onDemand('E2'), standard, china, vpn]))).toEqual([
      ['Standard Tier', true, '0:0 200:0.11 10240:0.075'],
    ]);
  });

  it('of an address is that beyond the free hours of the account', async () => {
    const address = sku(
      'OnDemand',
      'External IP Charge on a Standard VM',
      'h',
      [
        [0, '0'],
        [744, '0.005'],
      ],
      { serviceRegions: ['global'] },
    );
    const idle = sku('OnDemand', 'Static Ip Charge in Taiwan', 'h', [[0, '0.01']]);
    expect(shown(await read(E2, [...onDemand('E2'), address, idle]))).toEqual([
      ['External IP', true, '0:0.005'],
    ]);
  });

  it.each([
    ['of replicated disks', 'Regional Balanced PD Capacity in APAC'],
    ['of snapshots', 'Storage PD Snapshot in APAC'],
    ['of operations', 'Hyperdisk Balanced IOPS in APAC'],
    ['of pools', 'Hyperdisk Balanced Storage Pools Advanced Capacity - APAC'],
  ])('is not that %s', async (_, description) => {
    expect(
      shown(await read(E2, [...onDemand('E2'), sku('OnDemand', description, 'GiBy.mo', [[0, '9']])])),
    ).toEqual([]);
  });

  it.each([
    [
      'for another time',
      sku('OnDemand', 'Balanced PD Capacity in APAC', 'GiBy.h', [[0, '0.0001']]),
      'usageUnit must be GiBy.mo',
    ],
    [
      'without a first step',
      sku('OnDemand', 'Balanced PD Capacity in APAC', 'GiBy.mo', [[30, '0.1']]),
      'has no price from 0 on',
    ],
    [
      'for nothing',
      sku('OnDemand', 'Balanced PD Capacity in APAC', 'GiBy.mo', [[0, '0']]),
      'has no price above 0',
    ],
  ])('of disks %s is left out', async (_, other, reason) => {
    const { prices, offers, problems } = await read(E2, [...onDemand('E2'), other]);
    expect([prices, offers.length, problems]).toEqual([[], 1, [expect.stringContaining(reason)]]);
  });
});
