import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { limitBroken } from '../../src/domain/exclusion.ts';

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
      { numRuns: 1_000 },
    );
  });
});
