import { setTimeout as sleep } from 'node:timers/promises';

export interface UntilOptions {
  /** Milliseconds after which it fails; 60,000 unless given. */
  readonly timeoutMs?: number;
  /** What is waited for, in the failure's message; the condition's source unless given. */
  readonly what?: string;
  readonly everyMs?: number;
}

/**
 * Waits until the condition answers something truthy, and returns that. A condition that throws does not hold yet.
 * @throws Error that names the condition, the time waited and what it answered or threw last.
 */
export async function until<T>(
  condition: () => T | Promise<T>,
  options: UntilOptions = {},
): Promise<Exclude<T, undefined | null | false | 0 | ''>> {
  const { timeoutMs = 60_000, everyMs = 10, what = condition.toString() } = options;
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
    if (performance.now() - start >= timeoutMs) {
      throw new Error(`waited ${timeoutMs} ms in vain for: ${what}\nlast answer: ${shown(last)}`, {
        cause: last instanceof Error ? last : undefined,
      });
    }
    await sleep(everyMs);
  }
}

function shown(value: unknown): string {
  if (value instanceof Error) return `threw ${value.message}`;
  return JSON.stringify(value) ?? String(value);
}
