import type { Registry } from 'prom-client';
import type { SourceReasons } from '../db/quarantine.ts';
import type { RegionStatus, SourceStatus, SourceTrouble } from '../db/sources.ts';
import { gaugesOf, latest, type Series } from './latest.ts';

export interface SourceFacts
  extends Pick<
    SourceStatus,
    | 'id'
    | 'verifiedAt'
    | 'registeredAt'
    | 'retiredAt'
    | 'disabled'
    | 'known'
    | 'published'
    | 'quarantined'
    | 'held'
  > {
  readonly regions: readonly Pick<RegionStatus, 'code' | 'verifiedAt' | 'unreadSince'>[];
  readonly reasons?: Pick<SourceReasons, 'quarantined' | 'excluded'> | undefined;
  readonly trouble?: Pick<SourceTrouble, 'failedRuns' | 'heldSince'> | undefined;
}

export interface SourceGaugesOptions {
  readonly now?: () => number;
  readonly waitMs?: number;
  /** The maxAge of each configured source (s). Without this map, there are no gauges of the configuration. */
  readonly configured?: ReadonlyMap<string, number>;
}

/** Most series of ages of regions. Those of the oldest regions remain. */
const MOST_REGIONS = 1000;

/**
 * Adds gauges of all sources. While the database does not answer, the gauges use its last answer: ages, which alarms watch, keep
 * growing. A scrape neither fails nor hangs.
 *
 * The age of a source without a good run starts when the source became known; that of a region, when it was first unreadable. So
 * an alarm on age covers both. A retired source has no series unless it is configured.
 */
export function addSourceGauges(
  registry: Registry,
  read: () => Promise<readonly SourceFacts[]>,
  { now = Date.now, waitMs, configured }: SourceGaugesOptions = {},
): void {
  const isShown = ({ id, retiredAt }: SourceFacts) => retiredAt === null || configured?.has(id);
  const facts = latest<readonly SourceFacts[]>(async () => (await read()).filter(isShown), [], waitMs);
  const gauges = sourceGauges(gaugesOf(registry, facts));
  const ageOf = (instant: string) => Math.max(0, (now() - Date.parse(instant)) / 1000);
  gauges.gauge('fleetbook_database_reachable', '1 while PostgreSQL answers this worker, else 0', [], () => [
    [{}, facts.isAnswered ? 1 : 0],
  ]);
  addFreshness(gauges, ageOf);
  addStates(gauges, ageOf);
  addRows(gauges);
  if (configured) addConfiguration(gauges, configured);
}

type SourceGauges = ReturnType<typeof sourceGauges>;

function sourceGauges(gauge: ReturnType<typeof gaugesOf<readonly SourceFacts[]>>) {
  function ofReasons(
    name: string,
    help: string,
    value: (reasons: NonNullable<SourceFacts['reasons']>) => Readonly<Record<string, number>>,
  ): void {
    gauge(name, help, ['source', 'reason'], (facts) =>
      facts.flatMap(({ id, reasons }) =>
        Object.entries(reasons === undefined ? {} : value(reasons)).map(
          ([reason, count]): Series => [{ source: id, reason }, count],
        ),
      ),
    );
  }

  function ofSource(name: string, help: string, value: (facts: SourceFacts) => number): void {
    gauge(name, help, ['source'], (facts) => facts.map((each) => [{ source: each.id }, value(each)]));
  }

  return { gauge, ofSource, ofReasons };
}

function addFreshness({ gauge, ofSource }: SourceGauges, ageOf: (instant: string) => number): void {
  ofSource(
    'fleetbook_source_age_seconds',
    'Seconds since the last good run of the source began, or since the source became known',
    ({ verifiedAt, registeredAt }) => ageOf(verifiedAt ?? registeredAt),
  );
  ofSource(
    'fleetbook_source_never_succeeded',
    '1 for a source that has had no good run yet, else 0',
    ({ verifiedAt }) => (verifiedAt === null ? 1 : 0),
  );
  ofSource(
    'fleetbook_source_unread_regions',
    'Regions that the last good run of the source could not read',
    ({ regions }) => regions.filter(({ unreadSince }) => unreadSince !== null).length,
  );
  gauge(
    'fleetbook_region_age_seconds',
    `Seconds since the region was last read well, or first found unreadable; the ${MOST_REGIONS} oldest regions`,
    ['source', 'region'],
    (facts) =>
      facts
        .flatMap(({ id, regions }) =>
          regions.flatMap(({ code, verifiedAt, unreadSince }): Series[] => {
            const since = verifiedAt ?? unreadSince;
            return since === null ? [] : [[{ source: id, region: code }, ageOf(since)]];
          }),
        )
        .sort(([, one], [, other]) => other - one)
        .slice(0, MOST_REGIONS),
  );
}

function addStates({ ofSource }: SourceGauges, ageOf: (instant: string) => number): void {
  ofSource(
    'fleetbook_source_disabled',
    '1 for a disabled source: nothing reads it, and its data stays published; else 0',
    ({ disabled }) => (disabled === null ? 0 : 1),
  );
  ofSource('fleetbook_source_held_batches', 'Batches that wait for a decision', ({ held }) => held);
  ofSource(
    'fleetbook_source_held_seconds',
    'Time for which a batch of the source has waited for a decision; 0 without one',
    ({ trouble }) => (trouble?.heldSince ? ageOf(trouble.heldSince) : 0),
  );
  ofSource(
    'fleetbook_source_failed_runs',
    'Failed runs of the source since the last run that did not fail',
    ({ trouble }) => trouble?.failedRuns ?? 0,
  );
}

function addRows({ ofSource, ofReasons }: SourceGauges): void {
  ofSource(
    'fleetbook_source_known',
    'Stored machines, clusters or currencies of the source that are not retired',
    ({ known }) => known,
  );
  ofSource(
    'fleetbook_source_published',
    'Machines or clusters of the source that readers see',
    ({ published }) => published,
  );
  ofSource('fleetbook_source_quarantined_rows', 'Rejected rows', ({ quarantined }) => quarantined);
  ofReasons(
    'fleetbook_source_quarantined_by_reason',
    'Rejected rows, by the kind of reason',
    ({ quarantined }) => quarantined,
  );
  ofReasons(
    'fleetbook_source_excluded_by_reason',
    'Excluded machines: stored and not published, by reason',
    ({ excluded }) => excluded,
  );
}

function addConfiguration({ gauge, ofSource }: SourceGauges, configured: ReadonlyMap<string, number>): void {
  gauge(
    'fleetbook_source_freshness_objective_seconds',
    'Largest allowed age of the data of the source and each of its regions: its maxAge',
    ['source'],
    () => [...configured].map(([source, maxAge]) => [{ source }, maxAge]),
  );
  ofSource(
    'fleetbook_source_configured',
    '1 for a configured source; 0 for a stored source whose data stays published',
    ({ id }) => (configured.has(id) ? 1 : 0),
  );
}
