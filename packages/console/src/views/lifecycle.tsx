/** Engines and versions of all organizations' clusters, and the ends of their support. */

import { isEnding } from '../../../../src/domain/lifecycle.ts';
import type {
  ClusterTerms,
  LifecycleAnswer,
  VersionRow,
} from '../../../../src/features/console/routes/answers.ts';
import { useData } from '../lib/data.ts';
import { count, counted } from '../lib/format.ts';
import { filtersOf, type Place, queryOf } from '../lib/router.ts';
import { Ago, Badge, Progress, Title, type Tone } from '../parts/basics.tsx';
import { allOf, Choice } from '../parts/filters.tsx';
import { Pager } from '../parts/pager.tsx';
import { Table } from '../parts/table.tsx';
import { Tiles } from '../parts/tiles.tsx';

/** Versions per page. */
const LIMIT = 50;
const SPANS = [
  ['30', 'within 30 days'],
  ['90', 'within 90 days'],
  ['', 'within 180 days'],
  ['365', 'within a year'],
  ['3650', 'within ten years'],
] as const;

export function LifecycleView({ place }: { place: Place }) {
  const query = queryOf(place, ['within', 'engine', 'show', 'offset'], LIMIT);
  const answer = useData<LifecycleAnswer>(`/api/lifecycle?${query}`);
  const { data } = answer;
  return (
    <>
      <Title text="Ends of versions">
        {data && (
          <p class="summary">
            {data.readAt === null ? (
              'no source of release cycles was read; set LIFECYCLES_URL'
            ) : (
              <>
                release cycles read <Ago at={data.readAt} />
              </>
            )}
          </p>
        )}
      </Title>
      <Filters place={place} />
      <Progress {...answer} />
      {data && <Versions data={data} place={place} isOld={answer.isOld} />}
    </>
  );
}

function Filters({ place }: { place: Place }) {
  const { data } = useData<ClusterTerms>('/api/cluster-terms');
  const { value, set } = filtersOf(place);
  return (
    <search class="filters">
      <Choice label="Ends" value={value('within')} options={SPANS} onChoose={(within) => set({ within })} />
      <Choice
        label="Engine"
        value={value('engine')}
        options={allOf((data?.engines ?? []).map(({ engine }) => engine))}
        onChoose={(engine) => set({ engine })}
      />
      <Choice
        label="Show"
        value={value('show')}
        options={[
          ['', 'ending and unknown'],
          ['all', 'all versions'],
        ]}
        onChoose={(show) => set({ show })}
      />
    </search>
  );
}

function Versions({ data, place, isOld }: { data: LifecycleAnswer; place: Place; isOld: boolean }) {
  const { totals, rows, total, within } = data;
  return (
    <>
      <Tiles
        tiles={[
          [totals.ended, 'clusters after the end', 'bad'],
          [totals.ending, 'clusters end soon', 'warn'],
          [totals.unknown, 'clusters with an unknown end', 'note'],
          [totals.all, 'clusters in all', 'note'],
        ]}
      />
      {rows.length === 0 ? (
        <p class="calm">No version ends in this time.</p>
      ) : (
        <Table
          rows={rows}
          id={(row) => `${row.engine} ${row.version} ${row.endOfLife} ${row.provider}`}
          name="Version"
          isOld={isOld}
          columns={[
            ['Version', (row) => <Version {...row} />],
            ['State', (row) => <StateBadge {...row} within={within} />],
            ['Last supported day', ({ lifecycle }) => endText(lifecycle)],
            ['Provider', ({ provider }) => provider],
            ['Clusters', (row) => <Clusters {...row} />],
          ]}
        />
      )}
      <Pager place={place} total={total} limit={LIMIT} what="versions" />
    </>
  );
}

function Version({ engine, version, lifecycle: { cycle } }: VersionRow) {
  if (engine === null) return <>unknown</>;
  const text = version === null ? engine : `${engine} ${version}`;
  const query = new URLSearchParams({ engine, ...(version === null ? {} : { version }) });
  return (
    <>
      <a href={`/clusters?${query}`}>{text}</a>
      {cycle?.latest != null && (
        <span class="muted small">
          {' '}
          newest of {cycle.name}: {cycle.latest}
        </span>
      )}
    </>
  );
}

const TONES = { ended: 'bad', supported: 'good', unknown: 'note' } as const satisfies Record<string, Tone>;

function StateBadge({ lifecycle, within }: VersionRow & Pick<LifecycleAnswer, 'within'>) {
  const { state } = lifecycle;
  if (state === 'supported' && isEnding(lifecycle, within)) return <Badge tone="warn">ends soon</Badge>;
  return <Badge tone={TONES[state]}>{state}</Badge>;
}

const REASONS: Readonly<Record<NonNullable<VersionRow['lifecycle']['reason']>, string>> = {
  no_engine: 'the source states no engine',
  no_version: 'the source states no version',
  engine_not_covered: 'endoflife.date is not read for this engine',
  no_lifecycles: 'release cycles were not read',
  version_too_short: 'the version may be of several cycles',
  no_cycle: 'no release cycle has this version',
  not_announced: 'not announced',
};

/** `2026-11-12, in 82 days, by endoflife.date`, or why it is unknown. */
export function endText({ endOfLife, daysLeft, statedBy, reason }: VersionRow['lifecycle']): string {
  if (reason !== null) return REASONS[reason];
  if (endOfLife === null || daysLeft === null) return 'on an unknown day';
  const days = counted(Math.abs(daysLeft), 'day');
  const when = daysLeft < 0 ? `${days} ago` : daysLeft === 0 ? 'today' : `in ${days}`;
  return `${endOfLife}, ${when}, by ${statedBy === 'provider' ? 'the provider' : 'endoflife.date'}`;
}

function Clusters({ clusters, first }: VersionRow) {
  const more = clusters - first.length;
  return (
    <>
      {count(clusters)}{' '}
      <span class="muted small">
        {first.join(', ')}
        {more > 0 && ` and ${count(more)} more`}
      </span>
    </>
  );
}
