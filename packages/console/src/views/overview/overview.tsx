/** The problems that need an operator, then all sources. */
import { useState } from 'preact/hooks';
import type {
  Overview,
  Problem,
  QueueDepth,
  ShownSource,
} from '../../../../../src/features/console/routes/answers.ts';
import { useData } from '../../lib/data.ts';
import { count, counted } from '../../lib/format.ts';
import { filtersOf, type Place } from '../../lib/router.ts';
import { useHasRole } from '../../lib/session.ts';
import {
  Badge,
  ErrorText,
  Progress,
  STATES,
  StateBadge,
  TimeUntil,
  Title,
  toneOf,
} from '../../parts/basics.tsx';
import { Choice, Search } from '../../parts/filters.tsx';
import { FreshnessBar } from '../../parts/freshness.tsx';
import { RunStrip } from '../../parts/strip.tsx';
import { Table } from '../../parts/table.tsx';
import { SourceProblems } from '../sources/problems.tsx';
import { Charts } from './charts.tsx';
import { SelectedSources } from './selected-sources.tsx';

export function OverviewView({ place }: { place: Place }) {
  const answer = useData<Overview>('/api/overview');
  const { data } = answer;
  return (
    <>
      <Title text="Overview">{data && <Summary {...data} />}</Title>
      <Progress {...answer} />
      {data && <Problems {...data} />}
      {data && <Sources sources={data.sources} place={place} />}
      {data && <Charts />}
      {data && <Queues queues={data.queues} />}
    </>
  );
}

const sourcesOf = (problems: readonly Problem[]) => new Set(problems.map(({ source }) => source));

function Summary({ problems, otherProblems, sources }: Overview) {
  const severe = sourcesOf(problems.filter(({ severity }) => severity === 'problem'));
  const warned = sourcesOf(problems).size - severe.size;
  return (
    <p class="summary">
      {severe.size > 0 && <Badge tone="bad">{counted(severe.size, 'source')} with problems</Badge>}{' '}
      {warned > 0 && <Badge tone="warn">{counted(warned, 'source')} with warnings</Badge>}{' '}
      {otherProblems.length > 0 && (
        <Badge tone={otherProblems.some(({ severity }) => severity === 'problem') ? 'bad' : 'warn'}>
          {counted(otherProblems.length, 'other problem')}
        </Badge>
      )}
      {problems.length + otherProblems.length === 0 && <Badge tone="good">no problems</Badge>}{' '}
      {statesText(sources)} · <a href="#charts">charts</a>
    </p>
  );
}

/** Returns `3 of 4 sources fresh, 1 not needed`: only sources without a problem have such a state. */
function statesText(sources: readonly ShownSource[]): string {
  const intended = (['disabled', 'retired', 'not-needed'] as const).flatMap((state) => {
    const found = sources.filter((each) => each.state === state).length;
    return found === 0 ? [] : [`${found} ${STATES[state]}`];
  });
  const fresh = sources.filter(({ state }) => state === 'ok').length;
  return [`${fresh} of ${counted(sources.length, 'source')} fresh`, ...intended].join(', ');
}

function Problems({ problems, otherProblems, sources }: Overview) {
  return (
    <section aria-labelledby="problems">
      <h2 id="problems">Problems</h2>
      {problems.length + otherProblems.length === 0 ? (
        <p class="calm">
          No source and no worker has a problem: {statesText(sources)}. <code>fleetbook doctor</code> also
          checks settings, servers and ports.
        </p>
      ) : (
        <ul class="problems">
          {otherProblems.map(({ severity, about, text, path }) => (
            <li key={`${about} ${text}`} class={toneOf(severity)}>
              {path === null ? <strong>{about}</strong> : <a href={path}>{about}</a>}
              <p>{text}</p>
            </li>
          ))}
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

/** Returns the age as a share of the objective; infinity for a source that was never read. */
function lateness({ ageSeconds, objectiveSeconds }: ShownSource): number {
  if (ageSeconds === null) return Number.POSITIVE_INFINITY;
  return objectiveSeconds === null ? 0 : ageSeconds / objectiveSeconds;
}

const hasProblem = ({ severity }: ShownSource) => severity !== null;

function Sources({ sources, place }: { sources: readonly ShownSource[]; place: Place }) {
  const { value, set } = filtersOf(place);
  const state = value('state');
  const sort = value('sort') in ORDERS ? (value('sort') as SortKey) : 'state';
  const shown = sources
    .filter((source) => source.id.includes(value('q').toLowerCase()))
    .filter((source) => state === '' || (state === 'trouble' ? hasProblem(source) : source.state === state))
    .sort((one, other) => ORDERS[sort](one, other) || ORDERS.source(one, other));
  const canAct = useHasRole('operator');
  const [marked, setMarked] = useState<readonly string[]>([]);
  const ids = shown.map(({ id }) => id);
  const selected = marked.filter((id) => ids.includes(id));
  const present = URGENCY.filter((each) => sources.some((source) => source.state === each));
  return (
    <section aria-labelledby="sources">
      <h2 id="sources">Sources</h2>
      <search class="filters">
        <Search label="Search" value={value('q')} onSearch={(q) => set({ q })} />
        <Choice
          label="State"
          value={state}
          options={[
            ['', 'all'],
            ['trouble', 'all with problems'],
            ...present.map((each) => [each, STATES[each as ShownSource['state']]] as const),
          ]}
          onChoose={(chosen) => set({ state: chosen })}
        />
      </search>
      {canAct && <SelectedSources shown={ids} selected={selected} onSelect={setMarked} />}
      <SourceTable
        sources={shown}
        place={place}
        selected={selected}
        onSelect={
          canAct
            ? (id, isSelected) =>
                setMarked(isSelected ? [...marked, id] : marked.filter((each) => each !== id))
            : undefined
        }
      />
      {shown.length === 0 && (
        <p class="calm">
          {sources.length === 0
            ? 'No source is configured. Set a variable such as LINODE_URL, and restart the worker.'
            : 'No source matches.'}
        </p>
      )}
    </section>
  );
}

interface SourceTableProps {
  readonly sources: readonly ShownSource[];
  readonly place: Place;
  readonly selected: readonly string[];
  /** Undefined for viewers, whose role does not allow actions. */
  readonly onSelect: ((id: string, isSelected: boolean) => void) | undefined;
}

function SourceTable({ sources, place, selected, onSelect }: SourceTableProps) {
  const by = (sort: SortKey) => sort;
  return (
    <Table
      rows={sources}
      id={({ id }) => id}
      sorting={{ place, byDefault: by('state'), hasOneDirection: true }}
      columns={[
        [
          'Source',
          ({ id, kind }) => (
            <>
              {onSelect && (
                <input
                  type="checkbox"
                  class="select"
                  aria-label={`Select ${id}`}
                  checked={selected.includes(id)}
                  onChange={(event) => onSelect(id, event.currentTarget.checked)}
                />
              )}
              <a href={`/sources/${encodeURIComponent(id)}`}>{id}</a>
              <span class="muted small">
                {' '}
                {kind === 'rates' ? 'exchange rates' : kind === 'lifecycles' ? 'release cycles' : kind}
              </span>
            </>
          ),
          '',
          by('source'),
        ],
        ['State', (source) => <StateBadge {...source} />, '', by('state')],
        ['Age of data', (source) => <FreshnessBar {...source} />, '', by('age')],
        ['Last runs', ({ runs }) => <RunStrip runs={runs} />],
        ['Next run', ({ nextSlot }) => <TimeUntil at={nextSlot} />, '', by('next')],
        ['Known', ({ known }) => count(known), 'number', by('known')],
        ['Published', ({ published }) => count(published), 'number', by('published')],
        ['Rejected', ({ quarantined }) => count(quarantined), 'number', by('quarantined')],
      ]}
    />
  );
}

function Queues({ queues }: { queues: readonly QueueDepth[] | null }) {
  if (queues !== null && queues.length === 0) return null;
  return (
    <section aria-labelledby="queues">
      <h2 id="queues">Queues</h2>
      {queues === null ? (
        <ErrorText text="The queues’ Redis does not answer. Readers still work. Runs start again once Redis answers." />
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
