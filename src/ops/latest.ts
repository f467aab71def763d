/** Reads other servers for a scrape: once for all metrics, and with a timeout. */
import type { Registry } from 'prom-client';
import { Gauge } from 'prom-client';
import { withTimeout } from '../domain/timeout.ts';

export const WAIT_MS = 1500;

export interface Latest<T> {
  /** Returns the current value; without an answer in time, the last one. It never fails. */
  get(): Promise<T>;
  readonly isAnswered: boolean;
}

/** Shares one read between all callers, also later ones while it hangs. @param initial the value before the first answer */
export function latest<T>(read: () => Promise<T>, initial: T, waitMs = WAIT_MS): Latest<T> {
  let last = initial;
  let isAnswered = false;
  let reading: Promise<void> | undefined;

  async function get(): Promise<T> {
    reading ??= read()
      .then((value) => {
        last = value;
      })
      .finally(() => {
        reading = undefined;
      });
    isAnswered = await withTimeout(waitMs, reading).catch(() => false);
    return last;
  }

  return {
    get,
    get isAnswered() {
      return isAnswered;
    },
  };
}

export type Series = readonly [labels: Readonly<Record<string, string>>, value: number];

/** Returns a function that adds a gauge of the read value. All workers read the same servers, so sums would be wrong. */
export function gaugesOf<T>(registry: Registry, facts: Latest<T>) {
  return (
    name: string,
    help: string,
    labelNames: readonly string[],
    series: (facts: T) => readonly Series[],
  ): void => {
    new Gauge({
      name,
      help,
      labelNames: [...labelNames],
      registers: [registry],
      aggregator: 'max',
      async collect() {
        const read = await facts.get();
        this.reset();
        for (const [labels, value] of series(read)) this.set(labels, value);
      },
    });
  };
}
