/** First what needs a person, then every source. */
import { useState } from 'preact/hooks';
import type {
  Overview,
  Problem,
  QueueDepth,
  ShownSource,
} from '../../../../src/features/console/routes/api.ts';
import { useData } from '../lib/data.ts';
import { count, counted } from '../lib/format.ts';
import { addressWith, navigate, type Place } from '../lib/router.ts';
import { useMay } from '../lib/session.ts';
import { Ahead, Badge, Choice, Search, STATES, Title, Trouble } from '../parts/basics.tsx';
import { FreshnessBar } from '../parts/freshness.tsx';
import { RunStrip } from '../parts/strip.tsx';
import { Charts } from './charts.tsx';
import { SourceProblems } from './problem.tsx';
import { SelectedSources } from './selected-sources.tsx';

export function OverviewView({ place }: { place: Place }) {
  const { data, error } = useData<Overview>('/api/overview');
  return (
    <>
      <Title text="Overview">{data && <Summary {...data} />}</Title>
      <Trouble text={error} />
      {data && <NeedsAPerson problems={data.problems} />}
      {data && <Sources sources={data.sources} place={place} />}
      {data && <Charts />}
      {data && <Queues queues={data.queues} />}
      {!data && !error && <p class="loading">Asking the database …</p>}
    </>
  );
}

function Summary({ problems, sources }: Overview) {
  const fresh = sources.filter(({ state }) => state === 'ok').length;
  return (
    <p class="summary">
      {problems.length > 0 ? (
        <Badge tone={problems.some(({ kind }) => STATES[kind].tone === 'bad') ? 'bad' : 'warn'}>
          {counted(new Set(problems.map(({ source }) => source)).size, 'source')} to look at
        </Badge>
      ) : (
        <Badge tone="good">nothing to do</Badge>
      )}{' '}
      {fresh} of {counted(sources.length, 'source')} fresh · <a href="#charts">charts</a>
    </p>
  );
}

function NeedsAPerson({ problems }: { problems: readonly Problem[] }) {
  return (
    <section aria-labelledby="needs">
      <h2 id="needs">Needs a person</h2>
      {problems.length === 0 ? (
        <p class="calm">No batch is held, every source is fresh and no region is unread.</p>
      ) : (
        <ul class="problems">
          {[...Map.groupBy(problems, ({ source }) => source)].map(([source, ofSource]) => (
            <SourceProblems key={source} source={source} problems={ofSource} />
          ))}
        </ul>
      )}
    </section>
  );
}

type SortKey = 'source' | 'state' | 'age' | 'known' | 'published' | 'quarantined' | 'next';

const URGENCY = Object.keys(STATES);

const ORDERS: Readonly<Record<SortKey, (one: ShownSource, other: ShownSource) => number>> = {
  source: (one, other) => one.id.localeCompare(other.id),
  state: (one, other) => URGENCY.indexOf(one.state) - URGENCY.indexOf(other.state),
  age: (one, other) => lateness(other) - lateness(one),
  next: (one, other) => (one.nextSlot ?? '~').localeCompare(other.nextSlot ?? '~'),
  known: (one, other) => other.known - one.known,
  published: (one, other) => other.published - one.published,
  quarantined: (one, other) => other.quarantined - one.quarantined,
};

/** The share of what is allowed; what was never read comes first. */
function lateness({ ageSeconds, objectiveSeconds }: ShownSource): number {
  if (ageSeconds === null) return Number.POSITIVE_INFINITY;
  return objectiveSeconds === null ? 0 : ageSeconds / objectiveSeconds;
}

const COLUMNS: readonly (readonly [key: SortKey | undefined, text: string, isNumber?: boolean])[] = [
  ['source', 'Source'],
  ['state', 'State'],
  ['age', 'Age of data'],
  [undefined, 'Last runs'],
  ['next', 'Next run'],
  ['known', 'Known', true],
  ['published', 'Published', true],
  ['quarantined', 'Quarantined', true],
];

function Sources({ sources, place }: { sources: readonly ShownSource[]; place: Place }) {
  const search = place.query.get('q') ?? '';
  const state = place.query.get('state') ?? '';
  const given = place.query.get('sort') ?? 'state';
  const sort: SortKey = given in ORDERS ? (given as SortKey) : 'state';
  const set = (changes: Record<string, string>) => navigate(addressWith(place, changes), true);
  const shown = sources
    .filter((source) => source.id.includes(search.toLowerCase()))
    .filter((source) => state === '' || (state === 'trouble' ? isTrouble(source) : source.state === state))
    .sort((one, other) => ORDERS[sort](one, other) || ORDERS.source(one, other));
  const mayAct = useMay('operator');
  const [marked, setMarked] = useState<readonly string[]>([]);
  const ids = shown.map(({ id }) => id);
  const selected = marked.filter((id) => ids.includes(id));
  const select = (id: string, isSelected: boolean) =>
    setMarked(isSelected ? [...marked, id] : marked.filter((each) => each !== id));
  const present = URGENCY.filter((each) => sources.some((source) => source.state === each));
  return (
    <section aria-labelledby="sources">
      <h2 id="sources">Sources</h2>
      <search class="filters">
        <Search label="Search" value={search} onSearch={(q) => set({ q })} />
        <Choice
          label="State"
          value={state}
          options={[
            ['', 'all'],
            ['trouble', 'all that need a person'],
            ...present.map((each) => [each, STATES[each as ShownSource['state']].label] as const),
          ]}
          onChoose={(chosen) => set({ state: chosen })}
        />
      </search>
      {mayAct && <SelectedSources shown={ids} selected={selected} onSelect={setMarked} />}
      <table class="cards">
        <Head sort={sort} onSort={(key) => set({ sort: key === 'state' ? '' : key })} />
        <tbody>
          {shown.map((source) => (
            <SourceRow
              key={source.id}
              source={source}
              isSelected={selected.includes(source.id)}
              onSelect={mayAct ? (isSelected) => select(source.id, isSelected) : undefined}
            />
          ))}
        </tbody>
      </table>
      {shown.length === 0 && (
        <p class="calm">
          {sources.length === 0
            ? 'No source is configured. Name one, e.g. by LINODE_URL, and start the worker again.'
            : 'No source is like that.'}
        </p>
      )}
    </section>
  );
}

function Head({ sort, onSort }: { sort: SortKey; onSort: (key: SortKey) => void }) {
  return (
    <thead>
      <tr>
        {COLUMNS.map(([key, text, isNumber]) => (
          <th
            key={text}
            scope="col"
            class={isNumber ? 'number' : ''}
            aria-sort={key === sort ? 'other' : undefined}
          >
            {key === undefined ? (
              text
            ) : (
              <button type="button" class="sort" onClick={() => onSort(key)}>
                {text}
                {key === sort ? ' ▾' : ''}
              </button>
            )}
          </th>
        ))}
      </tr>
    </thead>
  );
}

const isTrouble = ({ state }: ShownSource) =>
  !['ok', 'running', 'retired', 'disabled', 'not-needed'].includes(state);

interface SourceRowProps {
  readonly source: ShownSource;
  readonly isSelected: boolean;
  /** Undefined for a viewer, who can do nothing with a source. */
  readonly onSelect: ((isSelected: boolean) => void) | undefined;
}

function SourceRow({ source, isSelected, onSelect }: SourceRowProps) {
  const { label, tone } = STATES[source.state];
  return (
    <tr>
      <th scope="row" data-label="Source">
        {onSelect && (
          <input
            type="checkbox"
            class="select"
            aria-label={`Select ${source.id}`}
            checked={isSelected}
            onChange={(event) => onSelect(event.currentTarget.checked)}
          />
        )}
        <a href={`/sources/${encodeURIComponent(source.id)}`}>{source.id}</a>
        <span class="muted small"> {source.kind === 'rates' ? 'exchange rates' : source.kind}</span>
      </th>
      <td data-label="State">
        <Badge tone={tone}>{label}</Badge>
      </td>
      <td data-label="Age of data">
        <FreshnessBar {...source} />
      </td>
      <td data-label="Last runs">
        <RunStrip runs={source.runs} />
      </td>
      <td data-label="Next run">
        <Ahead at={source.nextSlot} />
      </td>
      <td class="number" data-label="Known">
        {count(source.known)}
      </td>
      <td class="number" data-label="Published">
        {count(source.published)}
      </td>
      <td class="number" data-label="Quarantined">
        {count(source.quarantined)}
      </td>
    </tr>
  );
}

function Queues({ queues }: { queues: readonly QueueDepth[] | null }) {
  if (queues !== null && queues.length === 0) return null;
  return (
    <section aria-labelledby="queues">
      <h2 id="queues">Queues</h2>
      {queues === null ? (
        <Trouble text="The queues’ Redis does not answer. Readers are not concerned; runs begin again when it is back." />
      ) : (
        <ul class="queues">
          {queues.map(({ name, waiting, active, delayed, failed }) => (
            <li key={name}>
              <a href={`/queues/queue/${name}`}>{name}</a>: {waiting} waiting, {active} active, {delayed}{' '}
              delayed, {failed} failed
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
