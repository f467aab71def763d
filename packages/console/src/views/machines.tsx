/** The catalogue: machines, searched and sorted by the server. */
import type {
  FoundMachine,
  MachineSort,
  MachinesAnswer,
  PlacesAnswer,
} from '../../../../src/features/console/routes/api.ts';
import { useData } from '../lib/data.ts';
import { hourly } from '../lib/format.ts';
import { addressWith, navigate, type Place, queryOf } from '../lib/router.ts';
import { Badge, Choice, Search, Title, Trouble } from '../parts/basics.tsx';
import { Pager } from '../parts/pager.tsx';
import { type Column, SortedHead } from '../parts/sorted-head.tsx';
import { MachinePoints } from './machine-points.tsx';

const LIMIT = 100;
const FILTERS = [
  'q',
  'provider',
  'region',
  'min_cpu',
  'max_cpu',
  'min_ram',
  'max_ram',
  'published',
  'sort',
  'order',
  'offset',
];

export function MachinesView({ place }: { place: Place }) {
  const query = queryOf(place, FILTERS, LIMIT);
  const isChart = place.query.get('view') === 'chart';
  const { data, error, isOld } = useData<MachinesAnswer>(`/api/machines?${query}`);
  return (
    <>
      <Title text="Machines">
        {data?.currency && <p class="summary">prices in {data.currency} per hour</p>}
      </Title>
      <Filters place={place} />
      <nav class="tabs" aria-label="How machines are shown">
        <a href={addressWith(place, { view: '', size: '' })} aria-current={isChart ? undefined : 'page'}>
          Table
        </a>
        <a href={addressWith(place, { view: 'chart' })} aria-current={isChart ? 'page' : undefined}>
          Price against size
        </a>
      </nav>
      {isChart && <MachinePoints place={place} query={query} />}
      <Trouble text={error} />
      {data && <Found data={data} place={place} isOld={isOld} />}
      {!data && !error && <p class="loading">Asking the database …</p>}
    </>
  );
}

function Filters({ place }: { place: Place }) {
  const { data } = useData<PlacesAnswer>('/api/places');
  const value = (name: string) => place.query.get(name) ?? '';
  const set = (changes: Record<string, string>) => navigate(addressWith(place, changes), true);
  const providers = data?.providers ?? [];
  const chosen = providers.filter(({ id }) => value('provider') === '' || String(id) === value('provider'));
  const regions = [...new Set(chosen.flatMap((provider) => provider.regions))].sort();
  const known = (text: string) => regions.includes(text) || text === '';
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
        options={[
          ['', 'all'],
          ...(known(value('region')) ? [] : [[value('region'), value('region')] as const]),
          ...regions.map((code) => [code, code] as const),
        ]}
        onChoose={(region) => set({ region })}
      />
      {(
        [
          ['min_cpu', 'cpu from'],
          ['max_cpu', 'cpu to'],
          ['min_ram', 'Memory from'],
          ['max_ram', 'Memory to'],
        ] as const
      ).map(([name, label]) => (
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

const COLUMNS: readonly Column<MachineSort>[] = [
  [undefined, 'Machine'],
  ['region', 'Provider, region'],
  ['cpu', 'cpu', true],
  ['ram', 'Memory', true],
  ['price', 'Price', true],
  ['price_per_cpu', 'per cpu', true],
  ['price_per_gb', 'per GB', true],
];

function Found({ data, place, isOld }: { data: MachinesAnswer; place: Place; isOld: boolean }) {
  return (
    <>
      <table class={`cards ${isOld ? 'old' : ''}`}>
        <SortedHead place={place} columns={COLUMNS} usual="price" />
        <tbody>
          {data.rows.map((machine) => (
            <MachineRow key={machine.id} {...machine} />
          ))}
        </tbody>
      </table>
      <Pager place={place} total={data.total} limit={LIMIT} what="machines" isMore={data.isMore} />
    </>
  );
}

const priceText = (price: number | null) => (price === null ? '–' : hourly(price));

function MachineRow(machine: FoundMachine) {
  const { id, name, provider, region, cpu, ram, ramUnit, excludedReason } = machine;
  return (
    <tr>
      <th scope="row" data-label="Machine">
        <a href={`/machines/${id}`}>{name}</a>
        {excludedReason !== null && (
          <>
            {' '}
            <Badge tone="warn">{excludedReason}</Badge>
          </>
        )}
      </th>
      <td data-label="Provider, region">
        {provider}, {region}
      </td>
      <td class="number" data-label="cpu">
        {cpu}
      </td>
      <td class="number" data-label="Memory">
        {ram} {ramUnit === 'Binary' ? 'GiB' : 'GB'}
      </td>
      <td class="number" data-label="Price">
        {priceText(machine.price)}
      </td>
      <td class="number" data-label="per cpu">
        {priceText(machine.pricePerCpu)}
      </td>
      <td class="number" data-label="per GB">
        {priceText(machine.pricePerGb)}
      </td>
    </tr>
  );
}
