import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { availableShare, SHARE_DAYS } from '../../src/domain/stock.ts';
import { runs } from '../support/random.ts';

const DAY = 24 * 3600;
const NOW = 1_790_000_000;
const share = (times: readonly number[], isAvailable: boolean) =>
  availableShare(times, isAvailable, NOW * 1000);
const daysAgo = (days: number) => NOW - days * DAY;

describe('the share of the last 30 days', () => {
  it.each<[string, number[], boolean, number]>([
    ['a machine that never changed', [], true, 1],
    ['a machine that was always sold out', [], false, 0],
    ['a machine that was listed today', [NOW], true, 1],
    ['a machine that is sold out for three days', [daysAgo(100), daysAgo(3)], false, 0.9],
    ['a machine that is back for three days', [daysAgo(100), daysAgo(50), daysAgo(3)], true, 0.1],
    ['a change before the 30 days', [daysAgo(100), daysAgo(31)], true, 1],
    ['a machine that is known for four days alone', [daysAgo(4), daysAgo(1)], false, 0.75],
    ['three changes', [daysAgo(90), daysAgo(21), daysAgo(12), daysAgo(3)], false, 0.6],
    ['a minute without stock', [daysAgo(90), daysAgo(1), daysAgo(1) + 60], true, 0.999],
    ['a minute with stock', [daysAgo(90), daysAgo(1), daysAgo(1) + 60], false, 0.001],
    ['a clock behind the last change', [daysAgo(90), NOW + 60], false, 1],
  ])('of %s', (_, times, isAvailable, expected) => {
    expect(share(times, isAvailable)).toBe(expected);
  });

  it('is the counted share of each second, for every history', () => {
    const gaps = fc.array(fc.integer({ min: 0, max: 20 * DAY }), { maxLength: 12 });
    fc.assert(
      fc.property(gaps, fc.boolean(), (given, isAvailable) => {
        const times = given.map((_, i) => NOW - given.slice(i).reduce((sum, gap) => sum + gap, 0));
        const begin = Math.max(NOW - SHARE_DAYS * DAY, times[0] ?? 0);
        // Every tenth of a day, the number of changes behind it decides about the state.
        const step = 360;
        let [counted, all] = [0, 0];
        for (let at = begin; at < NOW; at += step) {
          const later = times.slice(1).filter((time) => time > at).length;
          counted += isAvailable === (later % 2 === 0) ? 1 : 0;
          all += 1;
        }
        if (all > 1000) expect(Math.abs(share(times, isAvailable) - counted / all)).toBeLessThan(0.015);
        expect(share(times, isAvailable)).toBeGreaterThanOrEqual(0);
        expect(share(times, isAvailable)).toBeLessThanOrEqual(1);
      }),
      { numRuns: runs(200) },
    );
  });
});
