import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { limitBroken, memory, memoryOfBytes, type SourceMemoryUnit } from '../../src/domain/machine.ts';
import { runs } from '../support/random.ts';

describe('memory', () => {
  it.each<[number, SourceMemoryUnit, number, string]>([
    [4, 'GB', 4, 'Decimal'],
    [0.5, 'GB', 0.5, 'Decimal'],
    [8, 'GiB', 8, 'Binary'],
    [1024, 'MiB', 1, 'Binary'],
    [512, 'MiB', 0.5, 'Binary'],
    [153_600, 'MiB', 150, 'Binary'],
    [2 ** 30, 'bytes', 1, 'Binary'],
    [34_359_738_368, 'bytes', 32, 'Binary'],
    [4_000_000_000, 'bytes', 3.725290298461914, 'Binary'],
  ])('reads %d %s as %d %s', (amount, unit, ram, counted) => {
    expect(memory(amount, unit)).toEqual({ ram, ramUnit: counted });
  });

  it('never turns one kind of unit into the other', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 24_576 }), (count) => {
        expect(memory(count, 'GB')).toEqual({ ram: count, ramUnit: 'Decimal' });
        expect(memory(count, 'GiB')).toEqual({ ram: count, ramUnit: 'Binary' });
        expect(memory(count * 1024, 'MiB')).toEqual({ ram: count, ramUnit: 'Binary' });
        expect(memory(count * 1024 ** 3, 'bytes')).toEqual({ ram: count, ramUnit: 'Binary' });
      }),
    );
  });
});

describe('memory of bytes', () => {
  it('is decimal if it is a multiple of 10^9, else binary', () => {
    expect(memoryOfBytes(12_000_000_000)).toEqual({ ram: 12, ramUnit: 'Decimal' });
    expect(memoryOfBytes(12 * 2 ** 30)).toEqual({ ram: 12, ramUnit: 'Binary' });
    expect(memoryOfBytes(1_500_000_000)).toEqual(memory(1_500_000_000, 'bytes'));
  });
});

describe('the cost-optimized limits', () => {
  it.each([
    { cpu: 32, ram: 128 },
    { cpu: 16, ram: 128 },
    { cpu: 1, ram: 8 },
    { cpu: 2, ram: 16 },
    { cpu: 32, ram: 1 },
    { cpu: 1, ram: 1 },
  ])('hold for %o, exactly at the limit or inside', (machine) => {
    expect(limitBroken(machine)).toBeUndefined();
  });

  it.each([
    [{ cpu: 33, ram: 128 }, 'over_cpu_limit'],
    [{ cpu: 33, ram: 1 }, 'over_cpu_limit'],
    [{ cpu: 32, ram: 129 }, 'over_ram_limit'],
    [{ cpu: 17, ram: 129 }, 'over_ram_limit'],
    [{ cpu: 1, ram: 9 }, 'over_ram_per_cpu_limit'],
    [{ cpu: 15, ram: 128 }, 'over_ram_per_cpu_limit'],
    [{ cpu: 15, ram: 121 }, 'over_ram_per_cpu_limit'],
    [{ cpu: 1, ram: 0.5 }, 'fractional_memory'],
    [{ cpu: 16, ram: 127.9 }, 'fractional_memory'],
  ])('are broken by %o: %s', (machine, reason) => {
    expect(limitBroken(machine)).toBe(reason);
  });

  it('let a machine pass exactly when all three hold', () => {
    const near = fc.record({ cpu: fc.integer({ min: 1, max: 40 }), ram: fc.integer({ min: 1, max: 140 }) });
    fc.assert(
      fc.property(near, ({ cpu, ram }) => {
        const passes = cpu <= 32 && ram <= 128 && ram / cpu <= 8;
        expect(limitBroken({ cpu, ram }) === undefined).toBe(passes);
      }),
      { numRuns: runs(1_000) },
    );
  });
});
