import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type FailedAttempt, nextAttempt } from '../../workers/retry.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const MONTH = 30 * DAY;
const NOW = new Date('2026-03-01T04:23:00Z');

/** At the start of its interval by default. */
function failed(change: Partial<FailedAttempt> = {}): FailedAttempt {
  const intervalMs = change.intervalMs ?? DAY;
  return {
    kind: 'retry',
    failures: 1,
    tookMs: 0,
    now: NOW,
    nextSlot: new Date(NOW.getTime() + intervalMs),
    intervalMs,
    ...change,
  };
}

/** The longest pause, in milliseconds; undefined if the next slot is earlier. */
function pause(change: Partial<FailedAttempt>): number | undefined {
  const { at } = nextAttempt(failed(change), () => 0.999_999_999);
  return at === undefined ? undefined : at.getTime() - NOW.getTime();
}

/** All attempts with a constantly failing upstream, in milliseconds after the slot. */
function chain(kind: FailedAttempt['kind'], intervalMs: number, random = () => 0.999_999_999): number[] {
  const nextSlot = new Date(NOW.getTime() + intervalMs);
  const times: number[] = [];
  let now = NOW;
  for (let failures = 1; failures < 10_000; failures++) {
    const { at } = nextAttempt(failed({ kind, failures, now, nextSlot, intervalMs }), random);
    if (at === undefined) return times;
    times.push(at.getTime() - NOW.getTime());
    now = at;
  }
  return expect.unreachable('it never ends');
}

describe('a failed attempt', () => {
  it.each<[string, Partial<FailedAttempt>, number | undefined]>([
    ['soon, the first time', {}, 15 * SECOND],
    ['later, the second time', { failures: 2 }, 30 * SECOND],
    ['later still, the sixth time', { failures: 6 }, 8 * MINUTE],
    ['after a quarter of an hour at most', { failures: 50 }, 15 * MINUTE],
    ['after a tenth of the interval at most', { failures: 50, intervalMs: HOUR }, 6 * MINUTE],
    ['after the first pause at least', { failures: 50, intervalMs: 2 * MINUTE }, 15 * SECOND],
    ['soon after an internal error', { kind: 'internal', failures: 2 }, 30 * SECOND],
    ['rarely after an unreadable answer', { kind: 'invalid' }, 5 * MINUTE],
    ['more rarely after the next one', { kind: 'invalid', failures: 3 }, 80 * MINUTE],
    [
      'after a quarter of the interval at most after an unreadable answer',
      { kind: 'invalid', failures: 3, intervalMs: 2 * HOUR },
      30 * MINUTE,
    ],
    [
      'after six hours at most after an unreadable answer',
      { kind: 'gone', failures: 99, intervalMs: MONTH },
      6 * HOUR,
    ],
    ['rarely after a run with unread regions', { kind: 'incomplete' }, 5 * MINUTE],
    ['more rarely after the next one', { kind: 'incomplete', failures: 2 }, 20 * MINUTE],
    ['never after a wrong setting', { kind: 'misconfigured' }, undefined],
    [
      'never after a wrong setting, whatever the upstream requires',
      { kind: 'misconfigured', retryAfterMs: 5 },
      undefined,
    ],
    ['not before the time that the upstream requires', { retryAfterMs: 20 * MINUTE }, 20 * MINUTE],
    ['not at once, even if the upstream permits it', { retryAfterMs: 0, failures: 3 }, MINUTE],
    ['after as long as the attempt took', { tookMs: 25 * MINUTE }, 25 * MINUTE],
  ])('is followed by another %s', (_, change, expected) => {
    const found = pause(change);
    if (expected === undefined) expect(found).toBeUndefined();
    else expect(Math.abs((found ?? 0) - expected)).toBeLessThanOrEqual(1);
  });

  it('is followed by none that would come at the next slot or later', () => {
    const nextSlot = new Date(NOW.getTime() + 15 * SECOND);
    expect(nextAttempt(failed({ nextSlot }), () => 0.999)).toHaveProperty('at');
    expect(nextAttempt(failed({ nextSlot, failures: 2 }), () => 0.999)).toEqual({});
    expect(nextAttempt(failed({ nextSlot: NOW }), () => 0)).toEqual({});
    expect(nextAttempt(failed({ nextSlot: new Date(NOW.getTime() - HOUR) }), () => 0)).toEqual({});
  });

  it('delays the next slot if the upstream requires a longer pause', () => {
    const change = { intervalMs: HOUR, retryAfterMs: 3 * HOUR };
    expect(nextAttempt(failed(change), () => 0)).toEqual({
      nextSlotNotBefore: new Date(NOW.getTime() + 3 * HOUR),
    });
    expect(nextAttempt(failed({ ...change, tookMs: 2 * HOUR, retryAfterMs: MINUTE }), () => 0)).toEqual({});
  });
});

describe('an unavailable upstream', () => {
  it.each([
    ['a day', DAY, 90, 110],
    ['a month', MONTH, 2_800, 2_900],
    ['an hour', HOUR, 12, 15],
    ['five minutes', 5 * MINUTE, 9, 10],
    ['a minute', MINUTE, 3, 4],
  ])('is requested in %s until its next slot, and no more often than needed', (_, interval, least, most) => {
    const times = chain('retry', interval);
    expect(times.length).toBeGreaterThanOrEqual(least);
    expect(times.length).toBeLessThanOrEqual(most);
    expect(interval - (times.at(-1) ?? 0)).toBeLessThanOrEqual(15 * MINUTE + 1);
  });

  it('with unreadable answers is requested a few times a day', () => {
    expect(chain('invalid', DAY).length).toBeLessThanOrEqual(8);
    expect(chain('invalid', DAY).length).toBeGreaterThanOrEqual(5);
    expect(chain('gone', MONTH).length).toBeLessThanOrEqual(130);
  });

  it('is never requested at its next slot or later, never at once, and never more than once at a time', () => {
    const kinds = fc.constantFrom<FailedAttempt['kind']>(
      'retry',
      'internal',
      'invalid',
      'gone',
      'misconfigured',
    );
    const randoms = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
    const property = fc.property(
      kinds,
      fc.integer({ min: MINUTE, max: MONTH }),
      randoms,
      (kind, interval, by) => {
        let before = 0;
        for (const at of chain(kind, interval, () => by)) {
          expect(at - before).toBeGreaterThanOrEqual(7.5 * SECOND);
          before = at;
        }
        expect(before).toBeLessThan(interval);
      },
    );
    fc.assert(property, { numRuns: 50 });
  });
});
