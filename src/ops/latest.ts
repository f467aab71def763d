/** What a scrape tells of other servers: asked once for all metrics that need it, and never waited for too long. */
import type { Registry } from 'prom-client';
import { Gauge } from 'prom-client';
import { withTimeout } from '../lib/timeout.ts';

/** Milliseconds that a scrape waits for a server. */
export const WAIT_MS = 1500;

export interface Latest<T> {
  /** What is known now. It never fails: while the server does not answer it is what was known last. */
  get(): Promise<T>;
  /** Whether the last question was answered, and in time. */
  readonly isAnswered: boolean;
}

/**
 * One read serves all who ask at once, and whoever asks next too while it hangs.
 * @param initial what is told before the first answer
 */
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

/** Makes gauges of what is read. Every worker reads the same servers: what they tell must not be added up. */
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
