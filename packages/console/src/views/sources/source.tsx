/** One source: state, facts, problems and history. */
import type {
  RequestedRunAnswer,
  ShownRegion,
  SourceAnswer,
} from '../../../../../src/features/console/routes/answers.ts';
import { useData } from '../../lib/data.ts';
import { count, utc } from '../../lib/format.ts';
import { filtersOf, type Place } from '../../lib/router.ts';
import { RequireRole } from '../../lib/session.ts';
import { Action } from '../../parts/action.tsx';
import { Ago, Badge, Facts, Progress, StateBadge, Tabs, TimeUntil, Title } from '../../parts/basics.tsx';
import { CancelRun } from '../../parts/cancel-run.tsx';
import { Search } from '../../parts/filters.tsx';
import { FreshnessBar } from '../../parts/freshness.tsx';
import { Pager } from '../../parts/pager.tsx';
import { RunStrip } from '../../parts/strip.tsx';
import { Table } from '../../parts/table.tsx';
import { SourceProblems } from './problems.tsx';
import { Excluded, Rejected } from './reasons.tsx';
import { Settings } from './settings.tsx';
import { Timeline } from './timeline.tsx';

export function SourceView({ place, id }: { place: Place; id: string }) {
  const path = `/api/sources/${encodeURIComponent(id)}`;
  const answer = useData<SourceAnswer>(path);
  const { data } = answer;
  const show = place.query.get('show') ?? 'timeline';
  return (
    <>
      <Title text={id}>{data && <StateAndActions path={path} place={place} answer={data} />}</Title>
      <Progress {...answer} />
      {data && <SourceFacts {...data} />}
      {data && data.problems.length > 0 && (
        <ul class="problems">
          <SourceProblems source={id} problems={data.problems} isHere />
        </ul>
      )}
      {data && (
        <Tabs
          label={`About ${id}`}
          tabs={tabsOf(data).map(([key, text, n]) => ({
            text,
            href: key === 'timeline' ? place.path : `${place.path}?show=${key}`,
            isCurrent: key === show,
            n,
          }))}
        />
      )}
      {show === 'timeline' && <Timeline path={path} place={place} />}
      {show === 'regions' && data && <Regions regions={data.regions} place={place} />}
      {show === 'rejected' && <Rejected path={path} place={place} />}
      {show === 'settings' && data && <Settings path={path} answer={data} />}
      {show === 'excluded' && <Excluded path={path} place={place} />}
    </>
  );
}

function tabsOf({ source, regions }: SourceAnswer): (readonly [key: string, text: string, n?: number])[] {
  return [
    ['timeline', 'Timeline'],
    ...(regions.length > 0 ? [['regions', 'Regions', regions.length] as const] : []),
    ['rejected', 'Rejected rows', source.quarantined],
    ...(source.counted === 'machines'
      ? [['excluded', 'Excluded machines', source.known - source.published] as const]
      : []),
    ['settings', 'Settings'],
  ];
}

interface StateAndActionsProps {
  readonly path: string;
  readonly place: Place;
  readonly answer: SourceAnswer;
}

function StateAndActions({ path, place, answer: { source, canRun } }: StateAndActionsProps) {
  const { id, disabled, configured } = source;
  const last = source.runs.at(-1);
  const action = disabled !== null ? 'Enable …' : configured ? 'Disable …' : 'Retire …';
  return (
    <>
      <StateBadge {...source} />
      <RequireRole minRole="operator">
        {last?.outcome === 'running' && <CancelRun source={id} run={last.id} />}
        {canRun && disabled === null && (
          <Action<RequestedRunAnswer>
            address={`${path}/run`}
            label="Run now"
            result={({ currentRun }) =>
              currentRun === null ? 'Starts now.' : `Starts when run ${currentRun} has ended.`
            }
          />
        )}
        <a class="button" href={`${place.path}?show=settings`}>
          {action}
        </a>
      </RequireRole>
    </>
  );
}

const NOUNS = {
  machines: 'Machines',
  'database plans': 'Database plans',
  clusters: 'Clusters',
  'exchange rates': 'Exchange rates',
  'release cycles': 'Release cycles',
} as const;

function SourceFacts({ source, scheduleInWords, nextSlots }: SourceAnswer) {
  const { known, published, quarantined } = source;
  return (
    <Facts
      facts={{
        'Age of data': <FreshnessBar {...source} />,
        'Last runs': <RunStrip runs={source.runs} />,
        'Data changed':
          source.changedAt === null ? 'in none of the stored runs' : <Ago at={source.changedAt} />,
        'Next runs': <NextRuns source={source} nextSlots={nextSlots} />,
        Schedule: scheduleInWords !== null && (
          <>
            {scheduleInWords}{' '}
            {!scheduleInWords.startsWith('cron ') && <span class="muted">({source.schedule})</span>}
          </>
        ),
        [NOUNS[source.counted]]:
          `${count(known)} known, ${count(published)} published, ${count(quarantined)} rows rejected`,
      }}
    />
  );
}

function NextRuns({ source, nextSlots }: Pick<SourceAnswer, 'source' | 'nextSlots'>) {
  if (nextSlots.length === 0)
    return <>none: the source is {source.disabled === null ? 'not configured here' : 'disabled'}</>;
  return (
    <>
      <TimeUntil at={source.nextSlot} />{' '}
      <span class="muted">(then {nextSlots.slice(1, 4).map(utc).join(', ')})</span>
    </>
  );
}

const REGIONS = 50;

/** Returns the sort value of a region: unread regions come first, then those with the oldest data. */
function urgency({ unreadSince, ageSeconds }: ShownRegion): number {
  if (unreadSince !== null) return Number.POSITIVE_INFINITY;
  return ageSeconds ?? Number.MAX_VALUE;
}

function Regions({ regions, place }: { regions: readonly ShownRegion[]; place: Place }) {
  const { value, set } = filtersOf(place);
  const search = value('q').toLowerCase();
  const offset = Number(value('offset') || 0);
  const found = regions
    .filter(({ code }) => code.toLowerCase().includes(search))
    .sort((one, other) => urgency(other) - urgency(one) || one.code.localeCompare(other.code));
  return (
    <section aria-label="Regions">
      <search class="filters">
        <Search label="Search" value={value('q')} onSearch={(q) => set({ q })} />
      </search>
      <Table
        rows={found.slice(offset, offset + REGIONS)}
        id={({ code }) => code}
        columns={[
          ['Region', ({ code }) => code],
          ['State', (region) => <RegionState {...region} />],
          ['Age of data', (region) => <FreshnessBar {...region} />],
          [
            'Why unread',
            ({ reason, unreadSince }) => (
              <>
                {reason ?? '–'}
                {unreadSince !== null && (
                  <span class="muted">
                    , since <Ago at={unreadSince} />
                  </span>
                )}
              </>
            ),
          ],
        ]}
      />
      {found.length === 0 ? (
        <p class="calm">No region matches.</p>
      ) : (
        <Pager place={place} total={found.length} limit={REGIONS} what="regions" />
      )}
    </section>
  );
}

function RegionState({ unreadSince, ageSeconds, objectiveSeconds }: ShownRegion) {
  if (ageSeconds === null) return <Badge tone="bad">never read</Badge>;
  if (unreadSince !== null) return <Badge tone="bad">unread</Badge>;
  const isStale = objectiveSeconds !== null && ageSeconds > objectiveSeconds;
  return isStale ? <Badge tone="bad">stale</Badge> : <Badge tone="good">fresh</Badge>;
}
