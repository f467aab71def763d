/** One held batch compared with the stored rows, and the decision about it. */
import type {
  HeldChanges,
  HeldMachines,
  HeldRow,
  ShownBatch,
} from '../../../../../src/features/console/routes/answers.ts';
import { useData } from '../../lib/data.ts';
import { count, hourly } from '../../lib/format.ts';
import { filtersOf, type Place, queryOf } from '../../lib/router.ts';
import { RequireRole } from '../../lib/session.ts';
import { Ago, Badge, Facts, Progress, Title, type Tone } from '../../parts/basics.tsx';
import { FieldValues, sumOf } from '../../parts/change-list.tsx';
import { Choice, Search } from '../../parts/filters.tsx';
import { Pager } from '../../parts/pager.tsx';
import { ReasonList } from '../../parts/reason-list.tsx';
import { type Column, Table } from '../../parts/table.tsx';
import { Tiles } from '../../parts/tiles.tsx';
import { Decide } from './decide.tsx';
import { Decision, StatusBadge } from './held.tsx';
import { Preview, RegionLinks } from './readers.tsx';
import { Replaced, Runs, StoredDiff, WorstRows } from './trail.tsx';

/** On a phone a row is a card: a page of them stays a few screens long. */
const LIMIT = 20;

const CHANGES: Readonly<Record<HeldRow['change'], readonly [text: string, tone: Tone]>> = {
  gone: ['gone', 'bad'],
  excluded: ['excluded', 'bad'],
  price: ['price', 'warn'],
  shape: ['shape', 'warn'],
  facts: ['facts', 'warn'],
  changed: ['changed', 'warn'],
  published: ['published again', 'good'],
  new: ['new', 'good'],
};

export function BatchView({ place, id }: { place: Place; id: string }) {
  const query = queryOf(place, ['q', 'change', 'offset'], LIMIT);
  const answer = useData<ShownBatch>(`/api/held/${encodeURIComponent(id)}?${query}`);
  const { data, isOld } = answer;
  return (
    <>
      <Title text={data ? `Batch ${data.id} of ${data.sourceId}` : `Batch ${id}`}>
        {data && <StatusBadge status={data.status} />}
      </Title>
      <Progress {...answer} text="Comparing the batch with the stored rows …" />
      {data && <BatchFacts batch={data} />}
      {data?.status === 'superseded' && <Replaced batch={data} />}
      <RequireRole minRole="operator">{data && <Decide key={data.id} batch={data} />}</RequireRole>
      {data?.changes && <Changes id={data.id} changes={data.changes} place={place} isOld={isOld} />}
      {data && data.status !== 'pending' && <DecidedBatch batch={data} place={place} />}
    </>
  );
}

/** Shows the changes of an approved batch, or sample rows of a batch that was not stored. */
function DecidedBatch({ batch, place }: { batch: ShownBatch; place: Place }) {
  const { storedBy } = batch.trail;
  if (storedBy === null) return <WorstRows worst={batch.worst} />;
  return <StoredDiff key={storedBy} run={storedBy} place={place} />;
}

function BatchFacts({ batch }: { batch: ShownBatch }) {
  const { sourceId, heldSince, readAt, pattern, broken, trail } = batch;
  return (
    <Facts
      facts={{
        Change: <strong>{pattern}</strong>,
        Source: <a href={`/sources/${encodeURIComponent(sourceId)}`}>{sourceId}</a>,
        Held: (
          <>
            <Ago at={heldSince} />
            {readAt > heldSince && (
              <span class="muted">
                , last read <Ago at={readAt} />
              </span>
            )}
          </>
        ),
        Why: (
          <ul class="plain">
            {broken.map(({ guard, detail }) => (
              <li key={`${guard} ${detail}`}>{detail}</li>
            ))}
          </ul>
        ),
        Runs: (trail.heldBy ?? trail.storedBy ?? trail.undoneBy) !== null && <Runs trail={trail} />,
        Decision: (batch.decidedAt ?? batch.undoneAt) !== null && <Decision batch={batch} />,
      }}
    />
  );
}

interface ChangesProps {
  readonly id: number;
  readonly changes: HeldChanges;
  readonly place: Place;
  readonly isOld: boolean;
}

function Changes({ id, changes, place, isOld }: ChangesProps) {
  const { diff, totals, rows, total, kind, unseen, isCut, reasons } = changes;
  const { value, set } = filtersOf(place);
  const isFiltered = value('q') !== '' || value('change') !== '';
  const kinds = (Object.keys(CHANGES) as HeldRow['change'][]).filter((each) => (totals[each] ?? 0) > 0);
  return (
    <section aria-labelledby="changes">
      <h2 id="changes">Changes for readers</h2>
      <p>{countsText(changes)}</p>
      <Tiles
        tiles={[
          [diff.known, 'stored now', 'note'],
          ...kinds.map((each) => [totals[each] ?? 0, ...CHANGES[each]] as const),
          ...(unseen > 0 ? [[unseen, 'changed, not visible to readers', 'note'] as const] : []),
        ]}
      />
      <search class="filters">
        <Search label="Search" value={value('q')} onSearch={(q) => set({ q })} />
        <Choice
          label="Change"
          value={value('change')}
          options={[['', 'all'], ...kinds.map((each) => [each, CHANGES[each][0]] as const)]}
          onChoose={(change) => set({ change })}
        />
      </search>
      {isCut && (
        <p class="calm">
          This batch is large: the table has only the 20,000 {NAMES[kind].many} with the largest changes of
          each kind. All of them: fleetbook hold show --all
        </p>
      )}
      {kind === 'catalogue' && <Preview batch={id} place={place} />}
      <Table
        rows={rows}
        id={keyOf}
        name={NAMES[kind].one}
        isOld={isOld}
        columns={kind === 'catalogue' ? machineColumns(changes, place) : rowColumns(kind)}
      />
      <Pager place={place} total={total} limit={LIMIT} what={isFiltered ? 'matching rows' : 'rows'} />
      {reasons.length > 0 && (
        <>
          <h2>Rejected rows</h2>
          <ReasonList reasons={reasons} />
        </>
      )}
    </section>
  );
}

/** Explains the numbers: what is counted, how much of it readers see, and what a row of the table is. */
function countsText({ kind, diff, totals, unseen }: HeldChanges): string {
  const seen = sumOf(totals);
  if (kind !== 'catalogue')
    return `${count(diff.known)} ${NAMES[kind].many} are stored, and the batch changes, adds or removes ${count(seen)}.`;
  const all = `${count(diff.known)} machines (types × regions) are stored, and the batch changes, adds or removes`;
  const hidden = unseen === 0 ? 'readers see all of them' : `readers see ${count(seen)} of them`;
  return `${all} ${count(seen + unseen)}; ${hidden}, and a row below is one change with all its regions.`;
}

type ClusterRow = Exclude<HeldRow, HeldMachines>;

const keyOf = (row: HeldRow) =>
  'regions' in row
    ? `${row.change} ${row.name} ${row.regions[0]}`
    : `${row.change} ${row.organization} ${row.key}`;

const CHANGE: Column<HeldRow> = [
  'Change',
  ({ change }) => <Badge tone={CHANGES[change][1]}>{CHANGES[change][0]}</Badge>,
];

const NAMES = {
  catalogue: { one: 'Machine', many: 'machines', owner: '' },
  clusters: { one: 'Cluster', many: 'clusters', owner: 'Organization' },
  lifecycles: { one: 'Cycle', many: 'release cycles', owner: 'Engine' },
} as const;

function rowColumns(kind: HeldChanges['kind']) {
  return [
    CHANGE,
    [NAMES[kind].one, ({ name }) => name],
    [NAMES[kind].owner, ({ organization }) => organization],
    ['Stored now', (row) => (row.change === 'new' ? '–' : valuesOf(row, 'before'))],
    ['In the batch', (row) => (row.change === 'gone' ? '–' : valuesOf(row, 'after'))],
    ['Key', ({ key }) => key],
  ] satisfies readonly Column<ClusterRow>[] as readonly Column<HeldRow>[];
}

function valuesOf({ fields }: ClusterRow, side: 'before' | 'after') {
  const shown = fields.filter(({ before, after }) => before !== null || after !== null);
  return <FieldValues fields={shown.map((each) => [each.field, each[side]])} />;
}

function machineColumns({ currency }: HeldChanges, place: Place) {
  const price = (amount: number | null) => (amount === null ? '' : `${hourly(amount)} ${currency ?? ''}/h`);
  /** The detail on either side of its arrow; a detail without an arrow is about the batch. */
  const sides = ({ detail }: HeldMachines) =>
    detail.includes(' → ') ? detail.split(' → ') : [undefined, detail];
  const storedText = (row: HeldMachines) => {
    const [before] = sides(row);
    if (row.oldPrice === null && before === undefined) return row.change === 'new' ? '–' : 'published';
    return `${price(row.oldPrice)} ${before ?? ''}`;
  };
  const batchText = (row: HeldMachines) =>
    `${row.change === 'gone' ? 'not listed' : price(row.newPrice)} ${sides(row)[1]}`;
  return [
    CHANGE,
    ['Machine', ({ name }) => name],
    ['Stored now', storedText],
    ['In the batch', batchText],
    ['Factor', ({ oldPrice, newPrice }) => factorText(oldPrice, newPrice)],
    ['Preview in', (row) => <RegionLinks place={place} {...row} />],
  ] satisfies readonly Column<HeldMachines>[] as readonly Column<HeldRow>[];
}

function factorText(before: number | null, after: number | null): string {
  if (before === null || after === null || before <= 0 || before === after) return '–';
  return `× ${Number((after / before).toPrecision(3))}`;
}
