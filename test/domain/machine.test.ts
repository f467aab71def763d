import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { memory, memoryOfBytes, type SourceMemoryUnit } from '../../src/domain/machine.ts';

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
