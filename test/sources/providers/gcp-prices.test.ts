/** Spot prices and commitments in Google's list of SKUs, with an own reading of the same payloads. */
import { describe, expect, it } from 'vitest';
import { amountsOf, commitment, E2, onDemand, read, sku, spot, type } from './gcp-skus.ts';
import { atoms, seeded } from './seeded.ts';

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
    [
      'a term of which its usage type says otherwise',
      sku('Commit3Yr', 'Commitment v1: E2 Cpu in APAC for 1 Year', 'h', [[0, '9']]),
    ],
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
        sku('Preemptible', 'Spot Preemptible E2 Instance Ram running in APAC', 'By.h', [[0, '0.001']]),
      ],
      'usageUnit must be GiBy.h or GBy.h; it is "By.h"',
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

describe('memory of GCP that is billed by decimal gigabytes', () => {
  const rows = (usage: string, prefix: string, [cpu, ram]: readonly [string, string]) => [
    sku(usage, `${prefix}C4D Instance Core running in Americas`, 'h', [[0, cpu]]),
    sku(usage, `${prefix}C4D Instance Ram running in Americas`, 'GBy.h', [[0, ram]]),
  ];
  // Rates of C4D in us-central1 that a test of SpareCores/sc-crawler cites from the list of 2026, with the price that it computes:
  // a gibibyte has 1.073741824 gigabytes. On demand: 8 × 0.0327035 + 31 × 1.073741824 × 0.003495578.
  it('costs as much for its gibibytes', async () => {
    const skus = [
      ...rows('OnDemand', '', ['0.0327035', '0.003495578']),
      ...rows('Preemptible', 'Spot Preemptible ', ['0.01', '0.001']),
    ];
    const types = [type('c4d-standard-8', 8, 31), type('c4d-highcpu-2', 2, 0.25)];
    const { offers, problems } = await read(types, skus);
    expect(problems).toEqual([]);
    expect(offers.map((offer) => [offer.price.amount, amountsOf(offer).spot])).toEqual([
      ['0.377981797227282432', '0.113285996544'],
      ['0.066345337074413568', '0.020268435456'],
    ]);
  });

  it('disagrees with another price only if that is another one for a gibibyte', async () => {
    const same = sku('OnDemand', 'C4D Instance Ram in APAC', 'GiBy.h', [[0, '1.073741824']]);
    const { offers, problems } = await read(
      [type('c4d-standard-8', 8, 31)],
      [...rows('OnDemand', '', ['0.01', '1']), same],
    );
    expect([offers.map(({ price }) => price.amount), problems]).toEqual([['33.365996544'], []]);
  });
});

it('m4n-ultramem-224 has other rates than M4N', async () => {
  const { offers, problems } = await read([type('m4n-ultramem-224', 224, 5952)], onDemand('M4N'));
  expect([offers, problems]).toEqual([
    [],
    ['has other rates than its family, which Fleetbook does not read'],
  ]);
});

describe('a plan of Cloud SQL', () => {
  const part = (text: string, unit: string, price: string) =>
    sku('OnDemand', `Cloud SQL for MySQL: ${text} in Taiwan`, unit, [[0, price]]);
  const CPU = part('Zonal - vCPU', 'h', '0.05');
  const PAIR = [CPU, part('Zonal - RAM', 'GiBy.h', '0.01')];
  const plansOf = async (skus: readonly object[]) => {
    const { plans, problems, isUnread } = await read(E2, onDemand('E2'), undefined, skus);
    return {
      plans: plans.map(({ name, nodes, price }) => `${name}/${nodes} ${price.amount}`),
      problems,
      isUnread,
    };
  };

  it('has the shapes of its edition; a regional one has two nodes', async () => {
    const enterprise = await plansOf(PAIR);
    expect(enterprise.plans).toHaveLength(16);
    expect(enterprise.plans).toContain('db-custom-2-7680/1 0.175');
    expect(enterprise.plans).toContain('db-custom-96-638976/1 11.04');
    expect([enterprise.problems, enterprise.isUnread]).toEqual([[], false]);
    const plus = await plansOf([
      part('Regional - Enterprise Plus vCPU', 'h', '0.1'),
      part('Regional - Enterprise Plus RAM', 'GiBy.h', '0.02'),
    ]);
    expect(plus.plans).toHaveLength(10);
    expect(plus.plans).toContain('db-perf-optimized-N-2/2 0.52');
    expect(plus.plans).toContain('db-perf-optimized-N-128/2 30.08');
  });

  it('is the same under both names of Enterprise, if they agree', async () => {
    const named = [
      part('Zonal - Enterprise vCPU', 'h', '0.05'),
      part('Zonal - Enterprise RAM', 'GiBy.h', '0.01'),
    ];
    expect(await plansOf([...PAIR, ...named])).toEqual(await plansOf(PAIR));
    const { plans, problems } = await plansOf([...PAIR, part('Zonal - Enterprise vCPU', 'h', '0.06')]);
    expect(plans).toEqual([]);
    expect(problems).toEqual([expect.stringContaining('SKUs disagree about its price: 0.05 and 0.06')]);
  });

  it.each([
    ['a core that is shared', 'Zonal - Micro instance', 'h'],
    ['a whole machine of an old tier', 'Zonal - 1 vCPU + 3.75GB RAM', 'h'],
    ['a core of another series', 'Zonal - Enterprise N4 vCPU', 'h'],
    ['Extended Support', 'Zonal - Extended support vCPU v8', 'h'],
    ['storage', 'Zonal - Standard storage', 'GiBy.mo'],
  ])('has nothing of the price of %s', async (_, text, unit) => {
    expect(await plansOf([...PAIR, part(text, unit, '9')])).toEqual(await plansOf(PAIR));
  });

  it.each([
    ['has no price of memory', [CPU], 'no SKU prices the RAM'],
    ['has free memory', [CPU, part('Zonal - RAM', 'GiBy.h', '0')], 'the RAM costs nothing'],
    ['has another unit', [CPU, part('Zonal - RAM', 'By.h', '0.01')], 'must be GiBy.h or GBy.h; it is "By.h"'],
    [
      'has no dedicated cores',
      [part('Zonal - Standard storage', 'GiBy.mo', '1')],
      'no SKU of 1 is a vCPU or RAM',
    ],
  ])('is no plan if it %s: the stored ones stay', async (_, skus, problem) => {
    const found = await plansOf(skus);
    expect(found).toEqual({ plans: [], problems: [expect.stringContaining(problem)], isUnread: true });
  });
});
