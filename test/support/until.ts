import { setTimeout as sleep } from 'node:timers/promises';

export interface UntilOptions {
  /** Timeout in milliseconds; default 60,000. */
  readonly timeoutMs?: number;
  /** The awaited condition for the error's message; default: the condition's source. */
  readonly what?: string;
  /** Milliseconds between two tests of the condition. By default they grow with the time waited, from 3 to 40. */
  readonly everyMs?: number;
}

/**
 * Waits until the condition returns a truthy value, and returns that. A condition that throws counts as false.
 * @throws Error that names the condition, the time waited and its last result or error
 */
export async function until<T>(
  condition: () => T | Promise<T>,
  options: UntilOptions = {},
): Promise<Exclude<T, undefined | null | false | 0 | ''>> {
  const { timeoutMs = 60_000, everyMs, what = condition.toString() } = options;
  const start = performance.now();
  for (;;) {
    let last: unknown;
    try {
      const value = await condition();
      if (value) return value as Exclude<T, undefined | null | false | 0 | ''>;
      last = value;
    } catch (error) {
      last = error;
    }
    const waited = performance.now() - start;
    if (waited >= timeoutMs) {
      throw new Error(`waited ${timeoutMs} ms in vain for: ${what}\nlast answer: ${shown(last)}`, {
        cause: last instanceof Error ? last : undefined,
      });
    }
    await sleep(everyMs ?? Math.min(40, Math.max(3, waited / 10)));
  }
}

function shown(value: unknown): string {
  if (value instanceof Error) return `threw ${value.message}`;
  return JSON.stringify(value) ?? String(value);
}
