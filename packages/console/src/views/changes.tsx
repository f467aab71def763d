/** The changes of all sources since a chosen time. */
import type { ChangesAnswer, PlacesAnswer } from '../../../../src/features/console/routes/answers.ts';
import { useData } from '../lib/data.ts';
import { counted, utc } from '../lib/format.ts';
import { addressWith, filtersOf, type Place } from '../lib/router.ts';
import { Progress, Tabs, Title } from '../parts/basics.tsx';
import { ChangeList, changesQuery, sumOf } from '../parts/change-list.tsx';
import { Choice } from '../parts/filters.tsx';

const SPANS = [
  ['1h', 'the last hour'],
  ['', 'the last 24 hours'],
  ['7d', 'the last 7 days'],
  ['30d', 'the last 30 days'],
] as const;

export function ChangesView({ place }: { place: Place }) {
  const query = changesQuery(place, 'since', 'provider', 'of');
  const answer = useData<ChangesAnswer>(`/api/changes?${query}`);
  const { data } = answer;
  const { data: places } = useData<PlacesAnswer>('/api/places');
  const { value, set } = filtersOf(place);
  return (
    <>
      <Title text="Changes">{data && <p class="summary">since {utc(data.since)}</p>}</Title>
      <search class="filters">
        <Choice label="Since" value={value('since')} options={SPANS} onChoose={(since) => set({ since })} />
        <Choice
          label="Provider"
          value={value('provider')}
          options={[
            ['', 'all'],
            ...(places?.providers ?? []).map(({ id, name }) => [String(id), name] as const),
          ]}
          onChoose={(provider) => set({ provider })}
        />
      </search>
      <Progress {...answer} />
      {data && !data.isComplete && (
        <p class="calm">
          The record of changes begins at {utc(data.keptSince)}. CHANGES_KEPT sets how many days it covers.
        </p>
      )}
      {data && <Subjects place={place} data={data} />}
      {data && <ChangeList diff={data.diff} place={place} isOld={answer.isOld} isMixed />}
    </>
  );
}

/** Tabs for machines and clusters, each with its number of changes. */
function Subjects({ place, data }: { place: Place; data: ChangesAnswer }) {
  const [own, other] = [sumOf(data.diff.totals), sumOf(data.otherTotals)];
  const isMachines = data.diff.of === 'machines';
  return (
    <Tabs
      label="Changes of"
      tabs={[
        {
          text: 'Machines',
          href: addressWith(place, { of: '', kind: '', order: '' }),
          isCurrent: isMachines,
          n: counted(isMachines ? own : other, 'change'),
        },
        {
          text: 'Clusters',
          href: addressWith(place, { of: 'clusters', kind: '', order: '' }),
          isCurrent: !isMachines,
          n: counted(isMachines ? other : own, 'change'),
        },
      ]}
    />
  );
}
