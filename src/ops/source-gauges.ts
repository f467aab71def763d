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
  /** Milliseconds since the epoch. */
  readonly now?: () => number;
  /** Milliseconds that a scrape waits for the database. */
  readonly waitMs?: number;
  /** Each source that this process knows, with the seconds that its data may be old; nothing is told of it unless given. */
  readonly configured?: ReadonlyMap<string, number>;
}

/** Series that the ages of regions may take; of more of them the oldest are told. */
const REGIONS_TOLD = 1000;

/**
 * Gauges of every source. Where the database does not answer, what it said last is told again: the age of the data
 * goes on growing, which is what an alarm watches, and a scrape neither fails nor hangs.
 *
 * A source that never succeeded ages from when it was first known, a region from when it was first found unreadable: an
 * alarm on age hears of both. Of a retired source nothing is told, until it is configured again.
 */
export function addSourceGauges(
  registry: Registry,
  read: () => Promise<readonly SourceFacts[]>,
  { now = Date.now, waitMs, configured }: SourceGaugesOptions = {},
): void {
  const isTold = ({ id, retiredAt }: SourceFacts) => retiredAt === null || configured?.has(id);
  const facts = latest<readonly SourceFacts[]>(async () => (await read()).filter(isTold), [], waitMs);
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

/** Makes gauges with one series for each source, and with one for each reason of each source. */
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

/** How old the data of each source is, and of each region. */
function addFreshness({ gauge, ofSource }: SourceGauges, ageOf: (instant: string) => number): void {
  ofSource(
    'fleetbook_source_age_seconds',
    'Seconds since the last good run of the source began, or since the source was first known',
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
    `Seconds since the region was last read well, or first found unreadable; the ${REGIONS_TOLD} oldest regions`,
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
        .slice(0, REGIONS_TOLD),
  );
}

/** What keeps a source from being read: an operator, a held batch, failures. */
function addStates({ ofSource }: SourceGauges, ageOf: (instant: string) => number): void {
  ofSource(
    'fleetbook_source_disabled',
    '1 for a source that an operator has disabled: nothing reads it, and what it has published stays; else 0',
    ({ disabled }) => (disabled === null ? 0 : 1),
  );
  ofSource('fleetbook_source_held_batches', 'Batches that wait for a decision', ({ held }) => held);
  ofSource(
    'fleetbook_source_held_seconds',
    'For how long the source has had a batch that waits for a decision; 0 where it has none',
    ({ trouble }) => (trouble?.heldSince ? ageOf(trouble.heldSince) : 0),
  );
  ofSource(
    'fleetbook_source_failed_runs',
    'Runs of the source that failed since the last one that did not',
    ({ trouble }) => trouble?.failedRuns ?? 0,
  );
}

/** How many rows of each source are stored, published and rejected. */
function addRows({ ofSource, ofReasons }: SourceGauges): void {
  ofSource(
    'fleetbook_source_known',
    'Machines or clusters of the source, or currencies, that are stored and not retired',
    ({ known }) => known,
  );
  ofSource(
    'fleetbook_source_published',
    'Machines or clusters of the source that readers see',
    ({ published }) => published,
  );
  ofSource(
    'fleetbook_source_quarantined_rows',
    'Rows that could not be used',
    ({ quarantined }) => quarantined,
  );
  ofReasons(
    'fleetbook_source_quarantined_by_reason',
    'Rows that could not be used, by the kind of reason',
    ({ quarantined }) => quarantined,
  );
  ofReasons(
    'fleetbook_source_excluded_by_reason',
    'Machines that are reported and not published, by reason',
    ({ excluded }) => excluded,
  );
}

/** The freshness objective of each configured source, and whether a source is configured. */
function addConfiguration({ gauge, ofSource }: SourceGauges, configured: ReadonlyMap<string, number>): void {
  gauge(
    'fleetbook_source_freshness_objective_seconds',
    'Seconds that the data of the source, and of each region of it, may be old: its maxAge',
    ['source'],
    () => [...configured].map(([source, maxAge]) => [{ source }, maxAge]),
  );
  ofSource(
    'fleetbook_source_configured',
    '1 for a source that is configured; 0 for one that is only stored, and published for ever',
    ({ id }) => (configured.has(id) ? 1 : 0),
  );
}
