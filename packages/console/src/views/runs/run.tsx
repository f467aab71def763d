/** One run: cause, outcome, changes and requests. */
import { causeInWords } from '../../../../../src/domain/run.ts';
import type { RunAnswer } from '../../../../../src/features/console/routes/answers.ts';
import { useData } from '../../lib/data.ts';
import { count, counted, span, utc } from '../../lib/format.ts';
import type { Place } from '../../lib/router.ts';
import { Ago, Badge, Facts, Progress, Title } from '../../parts/basics.tsx';
import { CancelRun } from '../../parts/cancel-run.tsx';
import { ChangeList, changesQuery } from '../../parts/change-list.tsx';
import { Links } from '../../parts/pager.tsx';
import { ReasonList } from '../../parts/reason-list.tsx';
import { Table } from '../../parts/table.tsx';
import { OUTCOMES } from '../sources/timeline.tsx';
import { Requests } from './requests.tsx';

export function RunView({ place, id }: { place: Place; id: string }) {
  const answer = useData<RunAnswer>(`/api/runs/${encodeURIComponent(id)}?${changesQuery(place)}`);
  const { data } = answer;
  return (
    <>
      <Title text={data ? `Run ${data.run.id} of ${data.run.sourceId}` : `Run ${id}`}>
        {data && <Badge tone={OUTCOMES[data.run.outcome] ?? 'note'}>{data.run.outcome}</Badge>}
        {data?.run.outcome === 'running' && <CancelRun source={data.run.sourceId} run={data.run.id} />}
        {data && (
          <Links
            label="Runs of the source"
            links={[
              data.previous !== null && ['Previous run', `/runs/${data.previous}`],
              data.next !== null && ['Next run', `/runs/${data.next}`],
            ]}
          />
        )}
      </Title>
      <Progress {...answer} />
      {data && <RunFacts run={data.run} />}
      {data && <Reasons run={data.run} />}
      {data && <Changes answer={data} place={place} isOld={answer.isOld} />}
      {data?.requests && <Requests {...data.requests} />}
    </>
  );
}

function RunFacts({ run }: { run: RunAnswer['run'] }) {
  const { sourceId, startedAt, finishedAt, seen, error, heldBatch } = run;
  const took = finishedAt === null ? undefined : (Date.parse(finishedAt) - Date.parse(startedAt)) / 1000;
  const failure = error !== null && (
    <>
      {error}
      {heldBatch !== null && '; see '}
      {heldBatch !== null && <a href={`/held/${heldBatch}`}>batch {heldBatch}</a>}
    </>
  );
  return (
    <Facts
      facts={{
        Source: <a href={`/sources/${encodeURIComponent(sourceId)}`}>{sourceId}</a>,
        Began: (
          <>
            {utc(startedAt)}, <Ago at={startedAt} />
            {took !== undefined && `, took ${took < 1 ? 'less than 1 s' : span(took)}`}
          </>
        ),
        Why: <Cause run={run} />,
        Rows:
          seen !== null &&
          `${count(seen)}: ${count(run.added ?? 0)} new, ${count(run.changed ?? 0)} changed, ${count(run.retired ?? 0)} retired, ${count(run.withdrawn ?? 0)} withdrawn, ${count(run.rejected ?? 0)} rejected`,
        [run.outcome === 'cancelled' ? 'Cancelled' : heldBatch === null ? 'Error' : 'Held']: failure,
      }}
    />
  );
}

function Cause({ run }: { run: RunAnswer['run'] }) {
  const { slot, decision } = run;
  return (
    <>
      {causeInWords(run) || 'not recorded'}
      {slot !== null && <span class="muted">, for the slot {utc(slot)}</span>}
      {decision !== null && (
        <>
          : <a href={`/held/${decision.batch}`}>batch {decision.batch}</a>{' '}
          {decision.kind === 'approve' ? 'was approved' : 'was undone'}
          {decision.reason !== null && <span class="muted">, “{decision.reason}”</span>}
        </>
      )}
    </>
  );
}

function Reasons({ run: { reasons, rejected, sourceId } }: { run: RunAnswer['run'] }) {
  if ((rejected ?? 0) === 0) return null;
  return (
    <section aria-labelledby="rejected">
      <h2 id="rejected">{counted(rejected ?? 0, 'rejected row')}</h2>
      {reasons.length === 0 ? (
        <p class="calm">The reasons of this run are deleted.</p>
      ) : (
        <ReasonList reasons={reasons} />
      )}
      <p class="muted">
        The last good run:{' '}
        <a href={`/sources/${encodeURIComponent(sourceId)}?show=rejected`}>rejected rows</a>
      </p>
    </section>
  );
}

interface ChangesProps {
  readonly answer: RunAnswer;
  readonly place: Place;
  readonly isOld: boolean;
}

function Changes({ answer: { run, isKept, unshown, diff }, place, isOld }: ChangesProps) {
  const { namings, rates } = run;
  return (
    <section aria-labelledby="diff">
      <h2 id="diff">Changes</h2>
      {namings.length > 0 && (
        <ul class="plain card">
          {namings.map(({ region, before, after }) => (
            <li key={region ?? ''}>
              {region === null ? 'The provider' : `Region ${region}`}{' '}
              {before === null ? `is new: ${after}` : `has another name: ${before} → ${after}`}
            </li>
          ))}
        </ul>
      )}
      {!isKept ? (
        <p class="calm">
          The changes of this run are not stored. CHANGES_KEPT sets for how many days changes are stored.
        </p>
      ) : diff.of === 'rates' ? (
        <Rates rates={rates} />
      ) : diff.of === 'lifecycles' ? (
        <p class="calm">Release cycles have no record of single changes.</p>
      ) : (
        <ChangeList diff={diff} place={place} isOld={isOld} />
      )}
      {unshown > 0 && <p class="muted">Another exchange rate changed {count(unshown)} more prices.</p>}
    </section>
  );
}

function Rates({ rates }: Pick<RunAnswer['run'], 'rates'>) {
  if (rates.length === 0) return <p class="calm">No exchange rate changed.</p>;
  return (
    <Table
      rows={rates}
      id={({ currency }) => currency}
      columns={[
        ['Currency', ({ currency }) => currency],
        ['For one euro, before', ({ before }) => before ?? '–', 'number'],
        ['After', ({ after }) => after, 'number'],
      ]}
    />
  );
}
