import type { Registry } from 'prom-client';
import type { SourceReasons } from '../db/quarantine.ts';
import type { RegionStatus, SourceStatus } from '../db/sources.ts';
import { gaugesOf, latest, type Series } from './scrape-reads.ts';

export interface SourceFacts
  extends Omit<SourceStatus, 'kind' | 'counted' | 'lastRun' | 'lastEnded' | 'failingSince' | 'regions'> {
  readonly regions: readonly Pick<RegionStatus, 'code' | 'verifiedAt' | 'unreadSince'>[];
  readonly reasons?: Pick<SourceReasons, 'quarantined' | 'excluded'> | undefined;
}

type AgeOf = (instant: string) => number;
type Gauge<T> = readonly [name: string, help: string, value: (facts: SourceFacts, ageOf: AgeOf) => T];

/** Gauges with one value for each source. */
const GAUGES: readonly Gauge<number>[] = [
  [
    'fleetbook_source_age_seconds',
    'Seconds since the last good run of the source began, or since the source became known',
    ({ verifiedAt, registeredAt }, ageOf) => ageOf(verifiedAt ?? registeredAt),
  ],
  [
    'fleetbook_source_never_succeeded',
    '1 for a source that has had no good run yet, else 0',
    ({ verifiedAt }) => (verifiedAt === null ? 1 : 0),
  ],
  [
    'fleetbook_source_unread_regions',
    'Regions that the last good run of the source could not read',
    ({ regions }) => regions.filter(({ unreadSince }) => unreadSince !== null).length,
  ],
  [
    'fleetbook_source_disabled',
    '1 for a disabled source: nothing reads it, and its data stays published; else 0',
    ({ disabled }) => (disabled === null ? 0 : 1),
  ],
  ['fleetbook_source_held_batches', 'Batches that wait for a decision', ({ held }) => held],
  [
    'fleetbook_source_held_seconds',
    'Time for which a batch of the source has waited for a decision; 0 without one',
    ({ heldSince }, ageOf) => (heldSince === null ? 0 : ageOf(heldSince)),
  ],
  [
    'fleetbook_source_failed_runs',
    'Failed runs of the source since the last run that did not fail',
    ({ failedRuns }) => failedRuns,
  ],
  [
    'fleetbook_source_known',
    'Stored machines, clusters or currencies of the source that are not retired; plans of databases if it has no machines',
    ({ known }) => known,
  ],
  [
    'fleetbook_source_published',
    'Those of fleetbook_source_known that readers see',
    ({ published }) => published,
  ],
  ['fleetbook_source_quarantined_rows', 'Rejected rows', ({ quarantined }) => quarantined],
];

/** Gauges with one value for each source and reason. */
const REASON_GAUGES: readonly Gauge<Readonly<Record<string, number>> | undefined>[] = [
  [
    'fleetbook_source_quarantined_by_reason',
    'Rejected rows, by the kind of reason',
    ({ reasons }) => reasons?.quarantined,
  ],
  [
    'fleetbook_source_excluded_by_reason',
    'Excluded machines: stored and not published, by reason',
    ({ reasons }) => reasons?.excluded,
  ],
];

/** Most series of ages of regions. Those of the oldest regions remain. */
const MOST_REGIONS = 1000;

/**
 * Adds gauges of all sources. While the database does not answer, the gauges use its last answer: ages, which alarms watch, keep
 * growing. A scrape neither fails nor hangs.
 *
 * The age of a source without a good run starts when the source became known; that of a region, when it was first unreadable. So
 * an alarm on age covers both. A retired source has no series unless it is configured.
 * @param configured the maxAge of each configured source (s); without it, there are no gauges of the configuration
 */
export function addSourceGauges(
  registry: Registry,
  read: () => Promise<readonly SourceFacts[]>,
  options: { now?: () => number; waitMs?: number; configured?: ReadonlyMap<string, number> } = {},
): void {
  const { now = Date.now, waitMs, configured } = options;
  const isShown = ({ id, retiredAt }: SourceFacts) => retiredAt === null || configured?.has(id);
  const facts = latest<readonly SourceFacts[]>(async () => (await read()).filter(isShown), [], waitMs);
  const gauge = gaugesOf(registry, facts);
  const ageOf: AgeOf = (instant) => Math.max(0, (now() - Date.parse(instant)) / 1000);
  const ofSource = ([name, help, value]: Gauge<number>) =>
    gauge(name, help, ['source'], (all) => all.map((each) => [{ source: each.id }, value(each, ageOf)]));
  gauge('fleetbook_database_reachable', '1 while PostgreSQL answers this worker, else 0', [], () => [
    [{}, facts.isAnswered ? 1 : 0],
  ]);
  for (const each of GAUGES) ofSource(each);
  for (const [name, help, value] of REASON_GAUGES)
    gauge(name, help, ['source', 'reason'], (all) =>
      all.flatMap((each) =>
        Object.entries(value(each, ageOf) ?? {}).map(
          ([reason, count]): Series => [{ source: each.id, reason }, count],
        ),
      ),
    );
  gauge(
    'fleetbook_region_age_seconds',
    `Seconds since the region was last read well, or first found unreadable; the ${MOST_REGIONS} oldest regions`,
    ['source', 'region'],
    (all) => agesOfRegions(all, ageOf),
  );
  if (!configured) return;
  gauge(
    'fleetbook_source_freshness_objective_seconds',
    'Largest allowed age of the data of the source and each of its regions: its maxAge',
    ['source'],
    () => [...configured].map(([source, maxAge]) => [{ source }, maxAge]),
  );
  ofSource([
    'fleetbook_source_configured',
    '1 for a configured source; 0 for a stored source whose data stays published',
    ({ id }) => (configured.has(id) ? 1 : 0),
  ]);
}

function agesOfRegions(all: readonly SourceFacts[], ageOf: AgeOf): readonly Series[] {
  const ages = all.flatMap(({ id, regions }) =>
    regions.flatMap(({ code, verifiedAt, unreadSince }): Series[] => {
      const since = verifiedAt ?? unreadSince;
      return since === null ? [] : [[{ source: id, region: code }, ageOf(since)]];
    }),
  );
  return ages.sort(([, one], [, other]) => other - one).slice(0, MOST_REGIONS);
}
