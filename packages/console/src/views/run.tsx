/** One run: why it began, how it ended, what it has changed and what it has requested. */
import { causeInWords } from '../../../../src/domain/run.ts';
import type { RunAnswer } from '../../../../src/features/console/routes/api.ts';
import { useData } from '../lib/data.ts';
import { count, counted, span, utc } from '../lib/format.ts';
import type { Place } from '../lib/router.ts';
import { Ago, Badge, Title, Trouble } from '../parts/basics.tsx';
import { CancelRun } from '../parts/cancel-run.tsx';
import { ChangeList, changesQuery } from '../parts/change-table.tsx';
import { ReasonList } from '../parts/reason-list.tsx';
import { Requests } from './run-requests.tsx';
import { OUTCOMES } from './timeline.tsx';

export function RunView({ place, id }: { place: Place; id: string }) {
  const { data, error, isOld } = useData<RunAnswer>(
    `/api/runs/${encodeURIComponent(id)}?${changesQuery(place)}`,
  );
  return (
    <>
      <Title text={data ? `Run ${data.run.id} of ${data.run.sourceId}` : `Run ${id}`}>
        {data && <Badge tone={OUTCOMES[data.run.outcome] ?? 'note'}>{data.run.outcome}</Badge>}
        {data?.run.outcome === 'running' && <CancelRun source={data.run.sourceId} run={data.run.id} />}
        {data && <Neighbours {...data} />}
      </Title>
      <Trouble text={error} />
      {data && <Facts run={data.run} />}
      {data && <Reasons run={data.run} />}
      {data && <Diff answer={data} place={place} isOld={isOld} />}
      {data?.requests && <Requests {...data.requests} />}
      {!data && !error && <p class="loading">Asking the database …</p>}
    </>
  );
}

/** Links to the runs of the same source before and after it. */
function Neighbours({ previous, next }: RunAnswer) {
  return (
    <nav class="pager" aria-label="Runs of the source">
      {previous !== null && (
        <a class="button" href={`/runs/${previous}`}>
          Previous run
        </a>
      )}
      {next !== null && (
        <a class="button" href={`/runs/${next}`}>
          Next run
        </a>
      )}
    </nav>
  );
}

function Facts({ run }: { run: RunAnswer['run'] }) {
  const { sourceId, slot, startedAt, finishedAt, seen, error, heldBatch, decision } = run;
  const took = finishedAt === null ? undefined : (Date.parse(finishedAt) - Date.parse(startedAt)) / 1000;
  const why = causeInWords(run) || 'not recorded';
  return (
    <dl class="facts">
      <dt>Source</dt>
      <dd>
        <a href={`/sources/${encodeURIComponent(sourceId)}`}>{sourceId}</a>
      </dd>
      <dt>Began</dt>
      <dd>
        {utc(startedAt)}, <Ago at={startedAt} />
        {took !== undefined && `, took ${took < 1 ? 'less than 1 s' : span(took)}`}
      </dd>
      <dt>Why</dt>
      <dd>
        {why}
        {slot !== null && <span class="muted">, for the slot {utc(slot)}</span>}
        {decision !== null && (
          <>
            : <a href={`/held/${decision.batch}`}>batch {decision.batch}</a>{' '}
            {decision.kind === 'approve' ? 'was approved' : 'was taken back'}
            {decision.reason !== null && <span class="muted">, “{decision.reason}”</span>}
          </>
        )}
      </dd>
      {seen !== null && (
        <>
          <dt>Rows</dt>
          <dd>
            {count(seen)}: {count(run.added ?? 0)} new, {count(run.changed ?? 0)} changed,{' '}
            {count(run.retired ?? 0)} retired, {count(run.withdrawn ?? 0)} withdrawn,{' '}
            {count(run.rejected ?? 0)} rejected
          </dd>
        </>
      )}
      {error !== null && (
        <>
          <dt>{run.outcome === 'cancelled' ? 'Cancelled' : heldBatch === null ? 'Error' : 'Held'}</dt>
          <dd>
            {error}
            {heldBatch !== null && (
              <>
                ; see <a href={`/held/${heldBatch}`}>batch {heldBatch}</a>
              </>
            )}
          </dd>
        </>
      )}
    </dl>
  );
}

/** Why rows could not be used. */
function Reasons({ run: { reasons, rejected, sourceId } }: { run: RunAnswer['run'] }) {
  if ((rejected ?? 0) === 0) return null;
  return (
    <section aria-labelledby="rejected">
      <h2 id="rejected">{counted(rejected ?? 0, 'row')} that could not be used</h2>
      {reasons.length === 0 ? (
        <p class="calm">The reasons of this run are not kept.</p>
      ) : (
        <ReasonList reasons={reasons} />
      )}
      <p class="muted">
        Those of the last good run:{' '}
        <a href={`/sources/${encodeURIComponent(sourceId)}?show=rejected`}>rejected rows</a>
      </p>
    </section>
  );
}

interface DiffProps {
  readonly answer: RunAnswer;
  readonly place: Place;
  readonly isOld: boolean;
}

function Diff({ answer: { run, isKept, unshown, diff }, place, isOld }: DiffProps) {
  const { namings, rates } = run;
  return (
    <section aria-labelledby="diff">
      <h2 id="diff">What it has changed</h2>
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
        <p class="calm">What it changed is not kept (any more). CHANGES_KEPT says for how many days it is.</p>
      ) : diff.of === 'rates' ? (
        <Rates rates={rates} />
      ) : (
        <ChangeList diff={diff} place={place} isOld={isOld} />
      )}
      {unshown > 0 && (
        <p class="muted">And {count(unshown)} changed only in what another exchange rate makes of a price.</p>
      )}
    </section>
  );
}

function Rates({ rates }: Pick<RunAnswer['run'], 'rates'>) {
  if (rates.length === 0) return <p class="calm">Every exchange rate was as before.</p>;
  return (
    <table class="cards">
      <thead>
        <tr>
          <th scope="col">Currency</th>
          <th scope="col" class="number">
            For one euro, before
          </th>
          <th scope="col" class="number">
            After
          </th>
        </tr>
      </thead>
      <tbody>
        {rates.map(({ currency, before, after }) => (
          <tr key={currency}>
            <th scope="row" data-label="Currency">
              {currency}
            </th>
            <td class="number" data-label="Before">
              {before ?? '–'}
            </td>
            <td class="number" data-label="After">
              {after}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
