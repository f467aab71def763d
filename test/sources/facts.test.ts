/** Reads facts of machines in the providers' formats: stated facts are read, others are unknown. */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { differingFacts, factsChange } from '../../src/domain/machine-facts.ts';
import { awsFacts } from '../../src/sources/providers/aws/facts.ts';
import { architecture, cpuKind, diskIn, gigabytes, networkIn } from '../../src/sources/schema/facts.ts';
import { offerItem } from '../../src/sources/schema/items.ts';

const Row = z.object({
  architecture,
  cpu: cpuKind,
  disk: diskIn('GiB'),
  network: networkIn(1e6),
});

it.each([
  ['x86', 'x86_64'],
  ['X86_64', 'x86_64'],
  ['x64', 'x86_64'],
  ['amd64', 'x86_64'],
  ['arm', 'arm64'],
  ['Arm64', 'arm64'],
  ['AARCH64', 'arm64'],
  ['riscv64', 'riscv64'],
  ['64-bit', undefined],
  ['', undefined],
  ['x'.repeat(40), undefined],
])('the architecture %s is %s', (stated, name) => {
  expect(Row.parse({ architecture: stated }).architecture).toBe(name);
});

it('an unreadable fact is unknown, and the row is read', () => {
  for (const odd of [null, '', 'many', {}, [], true, -1, 1e30, '__proto__', 'constructor']) {
    expect(Row.parse({ architecture: {}, cpu: odd, disk: odd, network: odd })).toEqual({});
  }
  expect(Row.parse({ cpu: 'shared', disk: 0, network: 0.0000001 })).toEqual({ cpu: 'shared', disk: 0 });
});

it('a disk is counted in GB to the nearest MB', () => {
  expect([gigabytes(25600, 'MiB'), gigabytes(25, 'GiB'), gigabytes(25, 'GB')]).toEqual([26.844, 26.844, 25]);
});

it('an offer has only its known facts', () => {
  const offer = { regionCode: 'a', name: 'x', cpu: 1, ram: 1, ramUnit: 'Binary' } as const;
  const price = { amount: '1', per: 'hour', currency: 'USD' } as const;
  const facts = { architecture: 'arm64', generation: undefined, localDisk: 0, network: null };
  expect(offerItem({ ...offer, price, facts })).toEqual({
    kind: 'offer',
    offer: { ...offer, price, facts: { architecture: 'arm64', localDisk: 0 } },
  });
  const unknown = offerItem({ ...offer, price, facts: { cpuKind: undefined } });
  expect(unknown).toStrictEqual({ kind: 'offer', offer: { ...offer, price } });
});

describe('the price list of AWS', () => {
  it.each([
    ['EBS only', 0],
    ['1 x 75 NVMe SSD', 75],
    ['2 x 1,900 NVMe SSD', 3800],
    ['24 x 2000 HDD', 48_000],
    ['900 GB NVMe SSD', 900],
    ['NA', undefined],
    ['2 x many', undefined],
  ])('states the disk %s', (storage, localDisk) => {
    expect(awsFacts('m5.large', { storage }).localDisk).toBe(localDisk);
  });

  it.each([
    ['25 Gigabit', 25_000],
    ['12.5 Gigabit', 12_500],
    ['12500 Megabit', 12_500],
    ['4x 100 Gigabit', 400_000],
    ['Up to 12.5 Gigabit', undefined],
    ['Moderate', undefined],
    ['0 Gigabit', undefined],
    ['99x 999999999 Gigabit', undefined],
  ])('states the network %s', (networkPerformance, network) => {
    expect(awsFacts('m5.large', { networkPerformance }).network).toBe(network);
  });

  it.each([
    ['m5.large', '5'],
    ['x2iedn.metal', '2'],
    ['u7i-12tb.224xlarge', '7'],
    ['u-6tb1.metal', undefined],
  ])('has the generation in the name %s', (name, generation) => {
    expect(awsFacts(name, {}).generation).toBe(generation);
  });

  it.each([
    ['AWS Graviton4 Processor', '64-bit', 'arm64'],
    ['Intel Xeon Platinum 8175', '64-bit', 'x86_64'],
    ['AMD EPYC 7R13 Processor', '32-bit or 64-bit', 'x86_64'],
    ['Intel Xeon Family', '32-bit', undefined],
    ['Apple M2', '64-bit', undefined],
  ])('names the processor %s of %s', (physicalProcessor, processorArchitecture, name) => {
    expect(awsFacts('m5.large', { physicalProcessor, processorArchitecture }).architecture).toBe(name);
  });
});

it('changed facts have values before and after', () => {
  const before = { architecture: 'arm64', localDisk: 0 };
  const after = {
    architecture: 'arm64',
    generation: 'v5',
    cpuKind: 'shared',
    localDisk: 80.5,
    network: 100,
  } as const;
  expect(factsChange(before, after)).toBe(
    'generation unknown, kind of cpu unknown, 0 GB local disk, network unknown → generation v5, shared cpu, 80.5 GB local disk, 100 Mbit/s',
  );
  expect(differingFacts(before, null)).toBe('arm64, 0 GB local disk');
  expect([factsChange(before, before), factsChange(null, {}), factsChange(null, null)]).toEqual(['', '', '']);
});
