import { Gauge, type Registry } from 'prom-client';
import type { SourceReasons } from '../store/excluded.ts';
import type { SourceStatus } from '../store/status.ts';

export type SourceFacts = Pick<SourceStatus, 'id' | 'verifiedAt' | 'published' | 'quarantined' | 'held'> & {
  readonly reasons?: Pick<SourceReasons, 'quarantined' | 'excluded'> | undefined;
};

export interface SourceGaugesOptions {
  /** Milliseconds since the epoch. */
  readonly now?: () => number;
  /** Milliseconds that a scrape waits for the database. */
  readonly waitMs?: number;
}

/**
 * Gauges of every source. Where the database does not answer, what it said last is told again: the age of the data
 * goes on growing, which is what an alarm watches, and a scrape neither fails nor hangs.
 */
export function addSourceGauges(
  registry: Registry,
  read: () => Promise<readonly SourceFacts[]>,
  { now = Date.now, waitMs = 1500 }: SourceGaugesOptions = {},
): void {
  let last: readonly SourceFacts[] = [];
  let reading: Promise<readonly SourceFacts[]> | undefined;

  /** One read serves all gauges of a scrape, and the next scrape too while it hangs. */
  async function latest(): Promise<readonly SourceFacts[]> {
    reading ??= read()
      .then(
        (facts) => {
          last = facts;
          return facts;
        },
        () => last,
      )
      .finally(() => {
        reading = undefined;
      });
    const { promise: late, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, waitMs);
    await Promise.race([reading, late]);
    clearTimeout(timer);
    return last;
  }

  function gauge(name: string, help: string, value: (facts: SourceFacts) => number | undefined): void {
    new Gauge({
      name,
      help,
      labelNames: ['source'],
      registers: [registry],
      // Every worker reads the same database: what they tell must not be added up.
      aggregator: 'max',
      async collect() {
        const facts = await latest();
        this.reset();
        for (const each of facts) {
          const found = value(each);
          if (found !== undefined) this.set({ source: each.id }, found);
        }
      },
    });
  }

  function reasonGauge(
    name: string,
    help: string,
    value: (reasons: NonNullable<SourceFacts['reasons']>) => Readonly<Record<string, number>>,
  ): void {
    new Gauge({
      name,
      help,
      labelNames: ['source', 'reason'],
      registers: [registry],
      aggregator: 'max',
      async collect() {
        const facts = await latest();
        this.reset();
        for (const { id, reasons } of facts) {
          if (reasons === undefined) continue;
          for (const [reason, count] of Object.entries(value(reasons)))
            this.set({ source: id, reason }, count);
        }
      },
    });
  }

  gauge('fleetbook_source_age_seconds', 'Seconds since the last good run of the source', ({ verifiedAt }) =>
    verifiedAt === null ? undefined : Math.max(0, (now() - Date.parse(verifiedAt)) / 1000),
  );
  gauge('fleetbook_source_held_batches', 'Batches that wait for a decision', ({ held }) => held);
  gauge(
    'fleetbook_source_published',
    'Machines or clusters of the source that readers see',
    ({ published }) => published,
  );
  gauge('fleetbook_source_quarantined_rows', 'Rows that could not be used', ({ quarantined }) => quarantined);
  reasonGauge(
    'fleetbook_source_quarantined_by_reason',
    'Rows that could not be used, by the kind of reason',
    ({ quarantined }) => quarantined,
  );
  reasonGauge(
    'fleetbook_source_excluded_by_reason',
    'Machines that are reported and not published, by reason',
    ({ excluded }) => excluded,
  );
}
