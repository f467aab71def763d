/** What has changed since a time: prices, arrivals and departures of all sources. */
import type { ChangesAnswer, PlacesAnswer } from '../../../../src/features/console/routes/api.ts';
import { useData } from '../lib/data.ts';
import { counted, utc } from '../lib/format.ts';
import { addressWith, navigate, type Place } from '../lib/router.ts';
import { Choice, Title, Trouble } from '../parts/basics.tsx';
import { ChangeList, changesQuery } from '../parts/change-table.tsx';

const SPANS = [
  ['1h', 'the last hour'],
  ['', 'the last 24 hours'],
  ['7d', 'the last 7 days'],
  ['30d', 'the last 30 days'],
] as const;

export function ChangesView({ place }: { place: Place }) {
  const query = changesQuery(place, 'since', 'provider', 'of');
  const { data, error, isOld } = useData<ChangesAnswer>(`/api/changes?${query}`);
  const { data: places } = useData<PlacesAnswer>('/api/places');
  const value = (name: string) => place.query.get(name) ?? '';
  const set = (changes: Record<string, string>) => navigate(addressWith(place, changes), true);
  const since = value('since');
  const isListed = SPANS.some(([span]) => span === since);
  return (
    <>
      <Title text="Changes">{data && <p class="summary">since {utc(data.since)}</p>}</Title>
      <search class="filters">
        <Choice
          label="Since"
          value={since}
          options={[...SPANS, ...(isListed ? [] : [[since, since] as const])]}
          onChoose={(chosen) => set({ since: chosen })}
        />
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
      <Trouble text={error} />
      {data && !data.isComplete && (
        <p class="calm">
          What changed before {utc(data.keptSince)} is not kept. CHANGES_KEPT says for how many days it is.
        </p>
      )}
      {data && <Of place={place} data={data} />}
      {data && <ChangeList diff={data.diff} place={place} isOld={isOld} isMixed />}
      {!data && !error && <p class="loading">Asking the database …</p>}
    </>
  );
}

/** Machines or clusters, each with how many changes there are. */
function Of({ place, data }: { place: Place; data: ChangesAnswer }) {
  const sum = (totals: Readonly<Record<string, number>>) =>
    Object.values(totals).reduce((all, each) => all + each, 0);
  const [own, other] = [sum(data.diff.totals), sum(data.otherTotals)];
  const isMachines = data.diff.of === 'machines';
  const tabs = [
    ['', 'Machines', isMachines ? own : other],
    ['clusters', 'Clusters', isMachines ? other : own],
  ] as const;
  return (
    <nav class="tabs" aria-label="Changes of">
      {tabs.map(([of, text, n]) => (
        <a
          key={text}
          href={addressWith(place, { of, kind: '', order: '' })}
          aria-current={(of === 'clusters') !== isMachines ? 'page' : undefined}
        >
          {text} <span class="muted">{counted(n, 'change')}</span>
        </a>
      ))}
    </nav>
  );
}
