/** The history of a source, newest first: runs, held batches and decisions. */
import { causeInWords } from '../../../../../src/domain/run.ts';
import type {
  TimelineAction,
  TimelineAnswer,
  TimelineRun,
} from '../../../../../src/features/console/routes/answers.ts';
import { useData } from '../../lib/data.ts';
import { count, counted, span } from '../../lib/format.ts';
import { groupRuns, type TimelineLine } from '../../lib/group-runs.ts';
import { addressWith, type Place, queryOf } from '../../lib/router.ts';
import { Ago, Badge, Progress, type Tone } from '../../parts/basics.tsx';
import { Links } from '../../parts/pager.tsx';

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
  const answer = useData<TimelineAnswer>(`${path}/timeline?${queryOf(place, ['before'], 50)}`);
  const { data, isOld } = answer;
  const last = data?.entries.at(-1);
  return (
    <section aria-label="Timeline">
      <Progress {...answer} />
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
      <Links
        label="Pages of the timeline"
        links={[
          place.query.has('before') && ['Newest', addressWith(place, { before: '' })],
          data?.hasOlder && last && ['Older', addressWith(place, { before: last.at })],
        ]}
      />
    </section>
  );
}

/** The decision that a batch had before its current status. */
const DECISIONS: Readonly<Record<string, string>> = { undone: 'approved', pending: 'rejected' };

function Line(line: TimelineLine) {
  if (line.kind === 'runs') return <Runs runs={line.runs} />;
  if (line.kind === 'action') return <Action {...line.did} />;
  const { kind, batch } = line;
  const what = kind === 'undone' ? 'undone' : (DECISIONS[batch.status] ?? batch.status);
  return (
    <div>
      <Badge tone={what === 'approved' ? 'good' : 'note'}>{what}</Badge>{' '}
      <a href={`/held/${batch.id}`}>batch {batch.id}</a> by {batch.by ?? 'an unknown person'}
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

/** Shows one run, or a group of consecutive equal runs. */
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

function Run(run: TimelineRun) {
  const { id, startedAt, finishedAt, outcome, error, heldBatch, seen } = run;
  const took = finishedAt === null ? undefined : (Date.parse(finishedAt) - Date.parse(startedAt)) / 1000;
  const why = causeInWords(run);
  const isTrouble = heldBatch === null && outcome !== 'cancelled';
  const counts = [
    [run.added, 'new'],
    [run.changed, 'changed'],
    [run.retired, 'retired'],
    [run.withdrawn, 'withdrawn'],
    [run.rejected, 'rejected'],
  ].flatMap(([n, what]) => (typeof n === 'number' && n > 0 ? [`, ${count(n)} ${what}`] : []));
  return (
    <div>
      <Badge tone={OUTCOMES[outcome] ?? 'note'}>{outcome}</Badge> <a href={`/runs/${id}`}>run {id}</a>
      {why !== '' && `, ${why}`}
      {seen !== null && `: ${count(seen)} rows${counts.join('')}`}
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
