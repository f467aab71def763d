/** One held batch against what is stored, and the decision about it. */
import type { HeldChanges, HeldRow, ShownBatch } from '../../../../src/features/console/routes/api.ts';
import { useData } from '../lib/data.ts';
import { count, hourly } from '../lib/format.ts';
import { addressWith, navigate, type Place } from '../lib/router.ts';
import { May } from '../lib/session.ts';
import { Ago, Badge, Choice, Search, Title, type Tone, Trouble } from '../parts/basics.tsx';
import { Pager } from '../parts/pager.tsx';
import { ReasonList } from '../parts/reason-list.tsx';
import { Replaced, Runs, StoredDiff, WorstRows } from './batch-trail.tsx';
import { Decide } from './decide.tsx';
import { Decision, StatusBadge } from './held.tsx';
import { ReadersView, SeeLink } from './readers.tsx';

const LIMIT = 100;

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
  const query = new URLSearchParams({ limit: String(LIMIT) });
  for (const name of ['q', 'change', 'offset']) {
    const value = place.query.get(name);
    if (value !== null) query.set(name, value);
  }
  const { data, error, isOld } = useData<ShownBatch>(`/api/held/${encodeURIComponent(id)}?${query}`);
  return (
    <>
      <Title text={data ? `Batch ${data.id} of ${data.sourceId}` : `Batch ${id}`}>
        {data && <StatusBadge status={data.status} />}
      </Title>
      <Trouble text={error} />
      {data && <Why batch={data} />}
      {data?.status === 'superseded' && <Replaced batch={data} />}
      <May as="operator">{data && <Decide key={data.id} batch={data} />}</May>
      {data?.changes && <Changes id={data.id} changes={data.changes} place={place} isOld={isOld} />}
      {data && data.status !== 'pending' && <Past batch={data} place={place} />}
      {!data && !error && <p class="loading">Comparing the batch with what is stored …</p>}
    </>
  );
}

/** Shows the changes of an approved batch, or the sample rows of a batch that was not stored. */
function Past({ batch, place }: { batch: ShownBatch; place: Place }) {
  const { storedBy } = batch.trail;
  return storedBy === null ? (
    <WorstRows worst={batch.worst} />
  ) : (
    <StoredDiff key={storedBy} run={storedBy} place={place} />
  );
}

function Why({ batch }: { batch: ShownBatch }) {
  return (
    <dl class="facts">
      <dt>Source</dt>
      <dd>
        <a href={`/sources/${encodeURIComponent(batch.sourceId)}`}>{batch.sourceId}</a>
      </dd>
      <dt>Held</dt>
      <dd>
        <Ago at={batch.heldSince} />
        {batch.readAt > batch.heldSince && (
          <span class="muted">
            , last read <Ago at={batch.readAt} />
          </span>
        )}
      </dd>
      <dt>Why</dt>
      <dd>
        <ul class="plain">
          {batch.broken.map(({ guard, detail }) => (
            <li key={`${guard} ${detail}`}>{detail}</li>
          ))}
        </ul>
      </dd>
      <Runs trail={batch.trail} />
      {(batch.decidedAt !== null || batch.undoneAt !== null) && (
        <>
          <dt>Decision</dt>
          <dd>
            <Decision batch={batch} />
          </dd>
        </>
      )}
    </dl>
  );
}

interface ChangesProps {
  readonly id: number;
  readonly changes: HeldChanges;
  readonly place: Place;
  readonly isOld: boolean;
}

function Changes({ id, changes, place, isOld }: ChangesProps) {
  const { diff, totals, rows, total, kind, unseen, isCut, reasons, currency } = changes;
  const set = (changed: Record<string, string>) => navigate(addressWith(place, changed), true);
  const kinds = (Object.keys(CHANGES) as HeldRow['change'][]).filter((each) => (totals[each] ?? 0) > 0);
  return (
    <section aria-labelledby="changes">
      <h2 id="changes">What it would change for readers</h2>
      <ul class="tiles">
        <Tile n={diff.known} what="known now" />
        {kinds.map((each) => (
          <Tile key={each} n={totals[each] ?? 0} what={CHANGES[each][0]} tone={CHANGES[each][1]} />
        ))}
        {unseen > 0 && <Tile n={unseen} what="change unseen" />}
      </ul>
      <search class="filters">
        <Search label="Search" value={place.query.get('q') ?? ''} onSearch={(q) => set({ q })} />
        <Choice
          label="Change"
          value={place.query.get('change') ?? ''}
          options={[['', 'all'], ...kinds.map((each) => [each, CHANGES[each][0]] as const)]}
          onChoose={(change) => set({ change })}
        />
      </search>
      {isCut && (
        <p class="calm">
          This batch is so large that of each kind only the 20,000 rows that change most are listed here. All
          of them: fleetbook hold show --all
        </p>
      )}
      {kind === 'catalogue' && <ReadersView batch={id} place={place} />}
      <table class={`cards ${isOld ? 'old' : ''}`}>
        <thead>
          <tr>
            <th scope="col">Change</th>
            <th scope="col">{kind === 'catalogue' ? 'Machine' : 'Cluster'}</th>
            <th scope="col">{kind === 'catalogue' ? 'Region' : 'Organization'}</th>
            <th scope="col">Stored now</th>
            <th scope="col">In the batch</th>
            <th scope="col">{kind === 'catalogue' ? 'Factor' : 'Key'}</th>
            {kind === 'catalogue' && <th scope="col">Readers</th>}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <ChangeRow key={keyOf(row)} row={row} currency={currency ?? ''} place={place} />
          ))}
        </tbody>
      </table>
      <Pager place={place} total={total} limit={LIMIT} what="changes" />
      {reasons.length > 0 && (
        <>
          <h2>Rows of it that cannot be used</h2>
          <ReasonList reasons={reasons} />
        </>
      )}
    </section>
  );
}

function Tile({ n, what, tone = 'note' }: { n: number; what: string; tone?: Tone }) {
  return (
    <li class={tone}>
      <strong>{count(n)}</strong> {what}
    </li>
  );
}

const keyOf = (row: HeldRow) =>
  'regionCode' in row
    ? `${row.change} ${row.regionCode} ${row.name}`
    : `${row.change} ${row.organization} ${row.key}`;

function ChangeRow({ row, currency, place }: { row: HeldRow; currency: string; place: Place }) {
  const [text, tone] = CHANGES[row.change];
  const badge = (
    <td data-label="Change">
      <Badge tone={tone}>{text}</Badge>
    </td>
  );
  if (!('regionCode' in row)) {
    const shown = row.fields.filter(({ before, after }) => before !== null || after !== null);
    return (
      <tr>
        {badge}
        <th scope="row" data-label="Cluster">
          {row.name}
        </th>
        <td data-label="Organization">{row.organization}</td>
        <td data-label="Stored now">
          {row.change === 'new'
            ? '–'
            : shown.map(({ field, before }) => <Field key={field} {...{ field, value: before }} />)}
        </td>
        <td data-label="In the batch">
          {row.change === 'gone'
            ? '–'
            : shown.map(({ field, after }) => <Field key={field} {...{ field, value: after }} />)}
        </td>
        <td data-label="Key">{row.key}</td>
      </tr>
    );
  }
  const { oldPrice, newPrice, detail } = row;
  const factor = oldPrice !== null && newPrice !== null && oldPrice > 0 ? newPrice / oldPrice : undefined;
  const [before, after] = detail.includes(' → ') ? detail.split(' → ') : [undefined, detail];
  return (
    <tr>
      {badge}
      <th scope="row" data-label="Machine">
        {row.name}
      </th>
      <td data-label="Region">{row.regionCode}</td>
      <td data-label="Stored now">
        {oldPrice === null ? '' : `${hourly(oldPrice)} ${currency}/h`} {before}
        {oldPrice === null && before === undefined && (row.change === 'new' ? '–' : 'published')}
      </td>
      <td data-label="In the batch">
        {row.change === 'gone' ? 'not listed' : ''}
        {newPrice === null ? '' : `${hourly(newPrice)} ${currency}/h`} {after}
      </td>
      <td data-label="Factor">
        {factor === undefined || factor === 1 ? '–' : `× ${Number(factor.toPrecision(3))}`}
      </td>
      <td data-label="Readers">
        <SeeLink place={place} {...row} />
      </td>
    </tr>
  );
}

function Field({ field, value }: { field: string; value: string | null }) {
  return (
    <div>
      <span class="muted">{field}</span> {value ?? 'none'}
    </div>
  );
}
