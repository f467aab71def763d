import { describe, expect, it } from 'vitest';
import { randomOf } from '../support/random.ts';
import { growthOf } from './growth.ts';

const ALLOWED = { share: 0.1, absolute: 5 };

describe('a series of samples', () => {
  it('does not grow if it only varies, or has one outlier', () => {
    const random = randomOf(1);
    const samples = Array.from({ length: 60 }, () => 100 + random() * 8);
    expect(growthOf(samples, ALLOWED).grows).toBe(false);
    expect(growthOf(samples.with(58, 5000), ALLOWED).grows).toBe(false);
  });

  it('does not grow if it rises and falls again', () => {
    const samples = Array.from({ length: 18 }, (_, i) => (i > 9 && i < 16 ? 330 : 200));
    expect(growthOf(samples, ALLOWED)).toEqual({ from: 200, to: 200, grows: false });
  });

  it('grows if it leaks, also slowly and with noise', () => {
    const random = randomOf(2);
    const leaking = Array.from({ length: 60 }, (_, i) => 100 + i * 0.5 + random() * 8);
    expect(growthOf(leaking, ALLOWED)).toMatchObject({ grows: true });
  });

  it('with small values may grow by a few', () => {
    expect(growthOf([1, 1, 1, 2, 2, 2, 5, 5, 5], ALLOWED)).toEqual({ from: 1, to: 5, grows: false });
    expect(growthOf([1, 1, 1, 2, 2, 2, 9, 9, 9], ALLOWED)).toEqual({ from: 1, to: 9, grows: true });
  });

  it('gives no verdict with too few samples', () => {
    expect(() => growthOf([1, 2, 3, 4], ALLOWED)).toThrow('run it for longer');
  });
});
