/** Reads other servers for a scrape: once for all metrics, and with a timeout. */
import { Gauge, type Registry } from 'prom-client';
import { withTimeout } from '../domain/clock.ts';

const WAIT_MS = 1500;

export type Latest<T> = ReturnType<typeof latest<T>>;

/** Shares one read between all callers, also later ones while it hangs. @param initial the value before the first answer */
export function latest<T>(read: () => Promise<T>, initial: T, waitMs = WAIT_MS) {
  let last = initial;
  let isAnswered = false;
  let reading: Promise<void> | undefined;

  /** Returns the current value; without an answer in time, the last one. It never fails. */
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
