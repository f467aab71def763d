/** The catalogue. The server searches and sorts the machines. */
import { endsInWords } from '../../../../../src/domain/machine-facts.ts';
import type {
  MachineSort,
  MachinesAnswer,
  PlacesAnswer,
} from '../../../../../src/features/console/routes/answers.ts';
import { useData } from '../../lib/data.ts';
import { hourly, memory } from '../../lib/format.ts';
import { addressWith, filtersOf, type Place, queryOf } from '../../lib/router.ts';
import { Badge, Progress, Tabs, Title } from '../../parts/basics.tsx';
import { allOf, Choice, Search } from '../../parts/filters.tsx';
import { Pager } from '../../parts/pager.tsx';
import { Table } from '../../parts/table.tsx';
import { MachinePoints } from './points.tsx';

const LIMIT = 100;
const SIZES = [
  ['min_cpu', 'cpu from'],
  ['max_cpu', 'cpu to'],
  ['min_ram', 'Memory from'],
  ['max_ram', 'Memory to'],
] as const;
const FILTERS = [
  'q',
  'provider',
  'region',
  'country',
  'continent',
  ...SIZES.map(([name]) => name),
  'published',
  'sort',
  'order',
  'offset',
];

export function MachinesView({ place }: { place: Place }) {
  const query = queryOf(place, FILTERS, LIMIT);
  const isChart = place.query.get('view') === 'chart';
  const answer = useData<MachinesAnswer>(`/api/machines?${query}`);
  const { data } = answer;
  return (
    <>
      <Title text="Machines">
        {data?.currency && <p class="summary">prices in {data.currency} per hour</p>}
      </Title>
      <Filters place={place} />
      <Tabs
        label="How machines are shown"
        tabs={[
          { text: 'Table', href: addressWith(place, { view: '', size: '' }), isCurrent: !isChart },
          { text: 'Price against size', href: addressWith(place, { view: 'chart' }), isCurrent: isChart },
        ]}
      />
      {isChart && <MachinePoints place={place} query={query} />}
      <Progress {...answer} />
      {data && <Found data={data} place={place} isOld={answer.isOld} />}
    </>
  );
}

function Filters({ place }: { place: Place }) {
  const { data } = useData<PlacesAnswer>('/api/places');
  const { value, set } = filtersOf(place);
  const providers = data?.providers ?? [];
  const chosen = providers.filter(({ id }) => value('provider') === '' || String(id) === value('provider'));
  const regions = [...new Set(chosen.flatMap((provider) => provider.regions))].sort();
  return (
    <search class="filters">
      <Search label="Name" value={value('q')} onSearch={(q) => set({ q })} />
      <Choice
        label="Provider"
        value={value('provider')}
        options={[['', 'all'], ...providers.map(({ id, name }) => [String(id), name] as const)]}
        onChoose={(provider) => set({ provider, region: '' })}
      />
      <Choice
        label="Region"
        value={value('region')}
        options={allOf(regions)}
        onChoose={(region) => set({ region })}
      />
      <Choice
        label="Country"
        value={value('country')}
        options={allOf(data?.countries ?? [])}
        onChoose={(country) => set({ country })}
      />
      <Choice
        label="Continent"
        value={value('continent')}
        options={allOf(data?.continents ?? [])}
        onChoose={(continent) => set({ continent })}
      />
      {SIZES.map(([name, label]) => (
        <label key={name} class="field">
          <span>{label}</span>
          <input
            type="number"
            min={0}
            value={value(name)}
            onChange={(event) => set({ [name]: event.currentTarget.value })}
          />
        </label>
      ))}
      <Choice
        label="Published"
        value={value('published')}
        options={[
          ['', 'yes'],
          ['no', 'no'],
          ['all', 'all'],
        ]}
        onChoose={(published) => set({ published })}
      />
    </search>
  );
}

const priceText = (price: number | null) => (price === null ? '–' : hourly(price));

function Found({ data, place, isOld }: { data: MachinesAnswer; place: Place; isOld: boolean }) {
  const by = (sort: MachineSort) => sort;
  return (
    <>
      <Table
        rows={data.rows}
        id={({ id }) => id}
        isOld={isOld}
        sorting={{ place, byDefault: by('price') }}
        columns={[
          [
            'Machine',
            ({ id, name, excludedReason, ...ends }) => (
              <>
                <a href={`/machines/${id}`}>{name}</a>
                {excludedReason !== null && ' '}
                {excludedReason !== null && <Badge tone="warn">{excludedReason}</Badge>}
                <span class="muted"> {endsInWords(ends)}</span>
              </>
            ),
          ],
          ['Provider, region', ({ provider, region }) => `${provider}, ${region}`, '', by('region')],
          ['cpu', ({ cpu }) => cpu, 'number', by('cpu')],
          ['Memory', memory, 'number', by('ram')],
          ['Price', ({ price }) => priceText(price), 'number', by('price')],
          ['per cpu', ({ pricePerCpu }) => priceText(pricePerCpu), 'number', by('price_per_cpu')],
          ['per GB', ({ pricePerGb }) => priceText(pricePerGb), 'number', by('price_per_gb')],
        ]}
      />
      <Pager place={place} total={data.total} limit={LIMIT} what="machines" isMore={data.isMore} />
    </>
  );
}
