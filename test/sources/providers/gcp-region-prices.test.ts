/** Prices of disks, traffic and addresses in Google's list of SKUs. */
import { describe, expect, it } from 'vitest';
import { E2, onDemand, read, type Step, sku } from './gcp-skus.ts';

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
