/** Lists changes of machines and clusters. */

import { differingFacts } from '../../../../src/domain/machine-facts.ts';
import { CLUSTER_FIELDS } from '../../../../src/domain/run.ts';
import type {
  ChangesAnswer,
  ClusterChange,
  MachineChange,
  MachineState,
} from '../../../../src/features/console/routes/answers.ts';
import { count, memory } from '../lib/format.ts';
import { filtersOf, type Place, queryOf } from '../lib/router.ts';
import { Ago, Badge, type Tone } from './basics.tsx';
import { allOf, Choice, Search } from './filters.tsx';
import { Pager } from './pager.tsx';
import { type Column, Table } from './table.tsx';
import { Tiles } from './tiles.tsx';

const LIMIT = 100;

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

/** Returns the query for a page of changes. */
export const changesQuery = (place: Place, ...more: readonly string[]): URLSearchParams =>
  queryOf(place, ['q', 'kind', 'order', 'offset', ...more], LIMIT);

export const sumOf = (totals: Readonly<Record<string, number>>): number =>
  Object.values(totals).reduce((sum, each) => sum + each, 0);

interface ChangeListProps {
  readonly diff: Diff;
  readonly place: Place;
  readonly isOld: boolean;
  /** The list has changes of several runs, so each row shows its run and time. */
  readonly isMixed?: boolean;
}

/** Shows the number of changes of each kind, filters, and one page of changes. */
export function ChangeList({ diff, place, isOld, isMixed = false }: ChangeListProps) {
  const { value, set } = filtersOf(place);
  const totals: Readonly<Record<string, number>> = diff.totals;
  const kind = value('kind');
  const present = Object.keys(totals).filter((each) => (totals[each] ?? 0) > 0 || each === kind);
  const all = sumOf(totals);
  if (all === 0 && kind === '' && value('q') === '') return <p class="calm">Nothing has changed.</p>;
  return (
    <>
      <Tiles tiles={present.map((each) => [totals[each] ?? 0, each, TONES[each as Kind]])} />
      <search class="filters">
        <Search label="Search" value={value('q')} onSearch={(q) => set({ q })} />
        <Choice
          label="Kind"
          value={kind}
          options={allOf(present)}
          onChoose={(chosen) => set({ kind: chosen })}
        />
        {diff.of === 'machines' && (
          <Choice
            label="Order"
            value={value('order')}
            options={[
              ['', 'by kind'],
              ['biggest', 'biggest price move'],
            ]}
            onChoose={(order) => set({ order })}
          />
        )}
      </search>
      {all === 0 ? (
        <p class="calm">No change matches.</p>
      ) : diff.of === 'machines' ? (
        <MachineChanges rows={diff.rows} isOld={isOld} isMixed={isMixed} />
      ) : (
        <ClusterChanges rows={diff.rows} isOld={isOld} isMixed={isMixed} />
      )}
      <Pager place={place} total={kind === '' ? all : (totals[kind] ?? 0)} limit={LIMIT} what="changes" />
    </>
  );
}

interface RowsProps<Row> {
  readonly rows: readonly Row[];
  readonly isOld: boolean;
  readonly isMixed: boolean;
}

const CHANGE: Column<Pick<MachineChange | ClusterChange, 'change'>> = [
  'Change',
  ({ change }) => <Badge tone={TONES[change]}>{change}</Badge>,
];
const WHEN: Column<Pick<MachineChange, 'runId' | 'changedAt' | 'source'>> = [
  'When',
  (row) => <When {...row} />,
];

function When({ runId, changedAt, source }: Pick<MachineChange, 'runId' | 'changedAt' | 'source'>) {
  return (
    <>
      <Ago at={changedAt} />,{' '}
      {runId === null ? (
        <a href={`/sources/${encodeURIComponent(source)}`}>{source}</a>
      ) : (
        <a class="whole" href={`/runs/${runId}`}>
          run {runId}
        </a>
      )}
    </>
  );
}

export function MachineChanges({ rows, isOld, isMixed }: RowsProps<MachineChange>) {
  return (
    <Table
      rows={rows}
      id={({ runId, machineId, change }) => `${runId} ${machineId} ${change}`}
      name="Machine"
      isOld={isOld}
      columns={[
        CHANGE,
        ['Machine', ({ machineId, name }) => <a href={`/machines/${machineId}`}>{name}</a>],
        isMixed && ['Provider', ({ provider }) => provider],
        ['Region', ({ regionCode }) => regionCode],
        ['Before', ({ before, after }) => stateText(before, after)],
        [
          'After',
          ({ change, before, after }) => (change === 'retired' ? 'not listed' : stateText(after, before)),
        ],
        ['Price', ({ factor }) => priceChangeText(factor), 'number whole'],
        isMixed && WHEN,
      ]}
    />
  );
}

/** Describes a state: its price and its differences from the other state. Without another state it describes everything. */
function stateText(state: MachineState | null, other: MachineState | null): string {
  if (state === null) return '–';
  const { amount, currency, per, excluded } = state;
  const shape = (of: MachineState) => `${of.cpu} cpu, ${memory(of)}`;
  const parts = [amount === null ? 'no price' : `${amount} ${currency}/${per}`];
  if (other === null || shape(other) !== shape(state)) parts.push(shape(state));
  const facts = other === null ? '' : differingFacts(state.facts, other.facts);
  if (facts !== '') parts.push(facts);
  if (excluded !== null) parts.push(excluded);
  else if (other !== null && other.excluded !== null) parts.push('published');
  return parts.join('; ');
}

/** `+50 %`, `−3.4 %`; from tenfold on a factor, `× 12`. */
function priceChangeText(factor: number | null): string {
  if (factor === null || factor === 1) return '–';
  if (factor >= 10) return `× ${count(Number(factor.toPrecision(3)))}`;
  const percent = Number(((factor - 1) * 100).toPrecision(3));
  return `${percent > 0 ? '+' : '−'}${Math.abs(percent)} %`;
}

function ClusterChanges({ rows, isOld, isMixed }: RowsProps<ClusterChange>) {
  return (
    <Table
      rows={rows}
      id={({ runId, clusterId, change }) => `${runId} ${clusterId} ${change}`}
      name="Cluster"
      isOld={isOld}
      columns={[
        CHANGE,
        [
          'Cluster',
          ({ clusterId, name, key }) => (
            <>
              <a href={`/clusters/${clusterId}`}>{name}</a> <span class="muted small">{key}</span>
            </>
          ),
        ],
        ['Organization', ({ organization }) => <a href={`/organizations/${organization}`}>{organization}</a>],
        ['Before', ({ before }) => <Fields state={before} />],
        ['After', ({ change, after }) => (change === 'retired' ? 'not listed' : <Fields state={after} />)],
        isMixed && WHEN,
      ]}
    />
  );
}

function Fields({ state }: { state: ClusterChange['before'] }) {
  if (state === null) return <>–</>;
  const shown = CLUSTER_FIELDS.filter((field) => field in state);
  return <FieldValues fields={shown.map((field) => [field, state[field] ?? null])} />;
}

/** Shows each field with its value on one line. */
export function FieldValues({
  fields,
}: {
  fields: readonly (readonly [field: string, value: string | null])[];
}) {
  return (
    <>
      {fields.map(([field, value]) => (
        <div key={field}>
          <span class="muted">{field}</span> {value ?? 'none'}
        </div>
      ))}
    </>
  );
}
