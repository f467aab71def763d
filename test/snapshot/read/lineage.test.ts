import { afterEach, expect, it, vi } from 'vitest';
import { watchLineage } from '../../../src/snapshot/read/lineage.ts';

afterEach(() => vi.useRealTimers());

/** Counts the checks of a second. Each one loses its connection, before or after it has its result. */
async function checksOfASecond(
  isWell: () => boolean | Promise<boolean>,
  isLost: 'before' | 'after' = 'before',
): Promise<number> {
  vi.useFakeTimers();
  let checks = 0;
  const watch = watchLineage(async () => {
    checks += 1;
    if (isLost === 'before') watch.checkNow();
    else setTimeout(() => watch.checkNow(), 1);
    return isWell();
  });
  await vi.advanceTimersByTimeAsync(1000);
  watch[Symbol.dispose]();
  return checks;
}

it('a database that is away is checked five times a second, also if each check loses its connection', async () => {
  const refused = () => Promise.reject(new Error('ECONNREFUSED'));
  expect(await checksOfASecond(refused, 'before')).toBeLessThanOrEqual(6);
  expect(await checksOfASecond(refused, 'after')).toBeLessThanOrEqual(6);
  expect(await checksOfASecond(() => false)).toBeLessThanOrEqual(6);
});

it('a loss during a successful check leads to another one at once', async () => {
  let results = 0;
  expect(await checksOfASecond(() => ++results > 0)).toBeGreaterThan(6);
});

it('a loss between two checks leads to one at once', async () => {
  vi.useFakeTimers();
  let checks = 0;
  const watch = watchLineage(async () => {
    checks += 1;
    return true;
  });
  await vi.advanceTimersByTimeAsync(100);
  expect(checks).toBe(1);
  watch.checkNow();
  await vi.advanceTimersByTimeAsync(1);
  expect(checks).toBe(2);
  watch[Symbol.dispose]();
});
