/** What has happened to a source, the newest first: runs, holds and decisions on one line of time. */

import { causeInWords } from '../../../../src/domain/run.ts';
import type {
  TimelineAction,
  TimelineAnswer,
  TimelineRun,
} from '../../../../src/features/console/routes/api.ts';
import { useData } from '../lib/data.ts';
import { count, counted, span } from '../lib/format.ts';
import { groupRuns, type TimelineLine } from '../lib/group-runs.ts';
import { addressWith, type Place } from '../lib/router.ts';
import { Ago, Badge, type Tone, Trouble } from '../parts/basics.tsx';

export const OUTCOMES: Readonly<Record<string, Tone>> = {
  changed: 'good',
  unchanged: 'good',
  held: 'warn',
  failed: 'bad',
  interrupted: 'bad',
  superseded: 'note',
  cancelled: 'note',
  running: 'note',
};

export function Timeline({ path, place }: { path: string; place: Place }) {
  const query = new URLSearchParams({ limit: '50' });
  const before = place.query.get('before');
  if (before !== null) query.set('before', before);
  const { data, error, isOld } = useData<TimelineAnswer>(`${path}/timeline?${query}`);
  const last = data?.entries.at(-1);
  return (
    <section aria-label="Timeline">
      <Trouble text={error} />
      {data?.entries.length === 0 && <p class="calm">Nothing has happened yet.</p>}
      {data && (
        <ol class={`timeline ${isOld ? 'old' : ''}`}>
          {groupRuns(data.entries).map((line) => (
            <li key={`${line.kind} ${line.at}`}>
              <span class="when">
                <Ago at={`${line.at.slice(0, 19)}Z`} />
              </span>
              <Line {...line} />
            </li>
          ))}
        </ol>
      )}
      <nav class="pager" aria-label="Pages of the timeline">
        {before !== null && (
          <a class="button" href={addressWith(place, { before: '' })}>
            Newest
          </a>
        )}
        {data?.hasOlder && last && (
          <a class="button" href={addressWith(place, { before: last.at })}>
            Older
          </a>
        )}
      </nav>
    </section>
  );
}

function Line(line: TimelineLine) {
  if (line.kind === 'runs') return <Runs runs={line.runs} />;
  if (line.kind === 'action') return <Action {...line.did} />;
  const { kind, batch } = line;
  const link = <a href={`/held/${batch.id}`}>batch {batch.id}</a>;
  const what =
    kind === 'undone'
      ? 'taken back'
      : batch.status === 'undone'
        ? 'approved'
        : batch.status === 'pending'
          ? 'rejected'
          : batch.status;
  return (
    <div>
      <Badge tone={what === 'approved' ? 'good' : 'note'}>{what}</Badge> {link} by{' '}
      {batch.by ?? 'nobody known'}
      {batch.reason !== null && <p class="muted">“{batch.reason}”</p>}
    </div>
  );
}

const ACTIONS: Readonly<Record<TimelineAction['action'], readonly [text: string, tone: Tone]>> = {
  'source.disable': ['disabled', 'warn'],
  'source.enable': ['enabled', 'good'],
  'source.retire': ['retired', 'bad'],
  'price.accept': ['price accepted', 'note'],
};

function Action({ action, by, reason, details }: TimelineAction) {
  const [text, tone] = ACTIONS[action];
  return (
    <div>
      <Badge tone={tone}>{text}</Badge>
      {typeof details.machine === 'string' && ` of ${details.machine}`} by {by}
      {reason !== null && <p class="muted">“{reason}”</p>}
    </div>
  );
}

/** One run, or how often the same happened in a row. */
function Runs({ runs }: { readonly runs: readonly [TimelineRun, ...TimelineRun[]] }) {
  const [newest] = runs;
  const oldest = runs.at(-1) ?? newest;
  return (
    <div>
      <Run {...newest} />
      {runs.length > 1 && (
        <p class="muted">
          {counted(runs.length, 'time')} in a row, since <a href={`/runs/${oldest.id}`}>run {oldest.id}</a>,{' '}
          <Ago at={oldest.startedAt} />
        </p>
      )}
    </div>
  );
}

function Run({
  id,
  cause,
  askedBy,
  startedAt,
  finishedAt,
  outcome,
  error,
  heldBatch,
  ...counts
}: TimelineRun) {
  const took = finishedAt === null ? undefined : (Date.parse(finishedAt) - Date.parse(startedAt)) / 1000;
  const { seen, added, changed, retired, rejected, withdrawn } = counts;
  const why = causeInWords({ cause, askedBy });
  const isTrouble = heldBatch === null && outcome !== 'cancelled';
  const told = [
    [added, 'new'],
    [changed, 'changed'],
    [retired, 'retired'],
    [withdrawn, 'withdrawn'],
    [rejected, 'rejected'],
  ].flatMap(([n, what]) => (typeof n === 'number' && n > 0 ? [`${count(n)} ${what}`] : []));
  return (
    <div>
      <Badge tone={OUTCOMES[outcome] ?? 'note'}>{outcome}</Badge> <a href={`/runs/${id}`}>run {id}</a>
      {why !== '' && `, ${why}`}
      {seen !== null && `: ${count(seen)} rows${told.length > 0 ? `, ${told.join(', ')}` : ''}`}
      {took !== undefined && <span class="muted">, {took < 1 ? 'less than 1 s' : span(took)}</span>}
      {heldBatch !== null && (
        <>
          , see <a href={`/held/${heldBatch}`}>batch {heldBatch}</a>
        </>
      )}
      {error !== null && <p class={isTrouble ? 'error' : 'muted'}>{error}</p>}
    </div>
  );
}
