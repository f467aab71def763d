/** Rows of what has changed: machines with their prices, clusters field by field. */

import { CLUSTER_FIELDS } from '../../../../src/domain/changes.ts';
import { differingFacts } from '../../../../src/domain/machine-facts.ts';
import type {
  ChangesAnswer,
  ClusterChange,
  MachineChange,
  MachineState,
} from '../../../../src/features/console/routes/api.ts';
import { count } from '../lib/format.ts';
import { addressWith, navigate, type Place } from '../lib/router.ts';
import { Ago, Badge, Choice, Search, type Tone } from './basics.tsx';
import { Pager } from './pager.tsx';

const CHANGES_SHOWN = 100;

type Diff = ChangesAnswer['diff'];
type Kind = Diff['rows'][number]['change'];

const TONES: Readonly<Record<Kind, Tone>> = {
  retired: 'bad',
  withdrawn: 'bad',
  sold_out: 'warn',
  reshaped: 'warn',
  repriced: 'warn',
  changed: 'warn',
  excluded: 'note',
  restocked: 'good',
  published: 'good',
  returned: 'good',
  added: 'good',
};

/** The parameters of a page of changes, as the routes take them. */
export function changesQuery(place: Place, ...more: readonly string[]): URLSearchParams {
  const query = new URLSearchParams({ limit: String(CHANGES_SHOWN) });
  for (const name of ['q', 'kind', 'order', 'offset', ...more]) {
    const value = place.query.get(name);
    if (value !== null) query.set(name, value);
  }
  return query;
}

interface ChangeListProps {
  readonly diff: Diff;
  readonly place: Place;
  readonly isOld: boolean;
  /** Also when and where each happened: of several runs. */
  readonly isMixed?: boolean;
}

/** How many there are of each kind, what narrows them, and one page of them. */
export function ChangeList({ diff, place, isOld, isMixed = false }: ChangeListProps) {
  const set = (changed: Record<string, string>) => navigate(addressWith(place, changed), true);
  const totals: Readonly<Record<string, number>> = diff.totals;
  const kind = place.query.get('kind') ?? '';
  const present = Object.keys(totals).filter((each) => (totals[each] ?? 0) > 0 || each === kind);
  const all = Object.values(totals).reduce((sum, each) => sum + each, 0);
  const isSearched = kind !== '' || place.query.has('q');
  if (all === 0 && !isSearched) return <p class="calm">Nothing has changed.</p>;
  return (
    <>
      {present.length > 0 && (
        <ul class="tiles">
          {present.map((each) => (
            <li key={each} class={TONES[each as Kind]}>
              <strong>{count(totals[each] ?? 0)}</strong> {each}
            </li>
          ))}
        </ul>
      )}
      <search class="filters">
        <Search label="Search" value={place.query.get('q') ?? ''} onSearch={(q) => set({ q })} />
        <Choice
          label="Kind"
          value={kind}
          options={[['', 'all'], ...present.map((each) => [each, each] as const)]}
          onChoose={(chosen) => set({ kind: chosen })}
        />
        {diff.of === 'machines' && (
          <Choice
            label="Order"
            value={place.query.get('order') ?? ''}
            options={[
              ['', 'by kind'],
              ['biggest', 'biggest price move'],
            ]}
            onChoose={(order) => set({ order })}
          />
        )}
      </search>
      {all === 0 ? (
        <p class="calm">No change is like that.</p>
      ) : diff.of === 'machines' ? (
        <MachineChanges rows={diff.rows} isOld={isOld} isMixed={isMixed} />
      ) : (
        <Clusters rows={diff.rows} isOld={isOld} isMixed={isMixed} />
      )}
      <Pager
        place={place}
        total={kind === '' ? all : (totals[kind] ?? 0)}
        limit={CHANGES_SHOWN}
        what="changes"
      />
    </>
  );
}

function When({ runId, changedAt, source }: Pick<MachineChange, 'runId' | 'changedAt' | 'source'>) {
  return (
    <td data-label="When">
      <span>
        <Ago at={changedAt} />,{' '}
        {runId === null ? (
          <a href={`/sources/${encodeURIComponent(source)}`}>{source}</a>
        ) : (
          <a class="whole" href={`/runs/${runId}`}>
            run {runId}
          </a>
        )}
      </span>
    </td>
  );
}

interface RowsProps<Row> {
  readonly rows: readonly Row[];
  readonly isOld: boolean;
  readonly isMixed: boolean;
}

export function MachineChanges({ rows, isOld, isMixed }: RowsProps<MachineChange>) {
  return (
    <table class={`cards ${isOld ? 'old' : ''}`}>
      <thead>
        <tr>
          <th scope="col">Change</th>
          <th scope="col">Machine</th>
          <th scope="col">{isMixed ? 'Provider, region' : 'Region'}</th>
          <th scope="col">Before</th>
          <th scope="col">After</th>
          <th scope="col" class="number">
            Price
          </th>
          {isMixed && <th scope="col">When</th>}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={`${row.runId} ${row.machineId} ${row.change}`}>
            <td data-label="Change">
              <Badge tone={TONES[row.change]}>{row.change}</Badge>
            </td>
            <th scope="row" data-label="Machine">
              <a href={`/machines/${row.machineId}`}>{row.name}</a>
            </th>
            <td data-label="Region">
              {isMixed && `${row.provider}, `}
              {row.regionCode}
            </td>
            <td data-label="Before">{stateText(row.before, row.after)}</td>
            <td data-label="After">
              {row.change === 'retired' ? 'not listed' : stateText(row.after, row.before)}
            </td>
            <td class="number whole" data-label="Price">
              {moveText(row.factor)}
            </td>
            {isMixed && <When {...row} />}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** The price, and of the rest what differs from the other state; all of it where there is none. */
function stateText(state: MachineState | null, other: MachineState | null): string {
  if (state === null) return '–';
  const { amount, currency, per, excluded } = state;
  const shape = (of: MachineState) => `${of.cpu} cpu, ${of.ram} ${of.ramUnit === 'Binary' ? 'GiB' : 'GB'}`;
  const parts = [amount === null ? 'no price' : `${amount} ${currency}/${per}`];
  if (other === null || shape(other) !== shape(state)) parts.push(shape(state));
  const facts = other === null ? '' : differingFacts(state.facts, other.facts);
  if (facts !== '') parts.push(facts);
  if (excluded !== null) parts.push(excluded);
  else if (other !== null && other.excluded !== null) parts.push('published');
  return parts.join('; ');
}

/** `+50 %`, `−3.4 %`; a rise to more than tenfold as a factor. */
function moveText(factor: number | null): string {
  if (factor === null || factor === 1) return '–';
  if (factor >= 10) return `× ${count(Number(factor.toPrecision(3)))}`;
  const percent = Number(((factor - 1) * 100).toPrecision(3));
  return `${percent > 0 ? '+' : '−'}${Math.abs(percent)} %`;
}

function Clusters({ rows, isOld, isMixed }: RowsProps<ClusterChange>) {
  return (
    <table class={`cards ${isOld ? 'old' : ''}`}>
      <thead>
        <tr>
          <th scope="col">Change</th>
          <th scope="col">Cluster</th>
          <th scope="col">Organization</th>
          <th scope="col">Before</th>
          <th scope="col">After</th>
          {isMixed && <th scope="col">When</th>}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={`${row.runId} ${row.clusterId} ${row.change}`}>
            <td data-label="Change">
              <Badge tone={TONES[row.change]}>{row.change}</Badge>
            </td>
            <th scope="row" data-label="Cluster">
              <a href={`/clusters/${row.clusterId}`}>{row.name}</a> <span class="muted small">{row.key}</span>
            </th>
            <td data-label="Organization">
              <a href={`/organizations/${row.organization}`}>{row.organization}</a>
            </td>
            <td data-label="Before">
              <Fields state={row.before} />
            </td>
            <td data-label="After">
              {row.change === 'retired' ? 'not listed' : <Fields state={row.after} />}
            </td>
            {isMixed && <When {...row} />}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Fields({ state }: { state: ClusterChange['before'] }) {
  if (state === null) return <>–</>;
  return (
    <div>
      {CLUSTER_FIELDS.filter((field) => field in state).map((field) => (
        <div key={field}>
          <span class="muted">{field}</span> {state[field] ?? 'none'}
        </div>
      ))}
    </div>
  );
}
