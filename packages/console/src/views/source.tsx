/** One source: how it is, and what happened to it. */
import { useState } from 'preact/hooks';
import type { ShownRegion, SourceAnswer } from '../../../../src/features/console/routes/api.ts';
import { act, useData } from '../lib/data.ts';
import { count, utc } from '../lib/format.ts';
import { addressWith, navigate, type Place } from '../lib/router.ts';
import { May } from '../lib/session.ts';
import { Ago, Ahead, Badge, Search, STATES, Title, Trouble } from '../parts/basics.tsx';
import { CancelRun } from '../parts/cancel-run.tsx';
import { FreshnessBar } from '../parts/freshness.tsx';
import { Pager } from '../parts/pager.tsx';
import { RunStrip } from '../parts/strip.tsx';
import { SourceProblems } from './problem.tsx';
import { Excluded, Rejected } from './reasons.tsx';
import { Settings } from './source-settings.tsx';
import { Timeline } from './timeline.tsx';

export function SourceView({ place, id }: { place: Place; id: string }) {
  const path = `/api/sources/${encodeURIComponent(id)}`;
  const { data, error } = useData<SourceAnswer>(path);
  const last = data?.source.runs.at(-1);
  const running = last?.outcome === 'running' ? last : undefined;
  const show = place.query.get('show') ?? 'timeline';
  const tabs = [
    ['timeline', 'Timeline', undefined],
    ...(data && data.regions.length > 0 ? [['regions', 'Regions', data.regions.length] as const] : []),
    ['rejected', 'Rejected rows', data?.source.quarantined],
    ...(data?.source.kind === 'catalogue'
      ? [['excluded', 'Excluded machines', data.source.known - data.source.published] as const]
      : []),
    ['settings', 'Settings', undefined],
  ] as const;
  return (
    <>
      <Title text={id}>
        {data && <Badge tone={STATES[data.source.state].tone}>{STATES[data.source.state].label}</Badge>}
        <May as="operator">
          {running && <CancelRun source={id} run={running.id} />}
          {data?.canRun && data.source.disabled === null && <RunNow id={id} />}
          {data && (
            <a class="button" href={`${place.path}?show=settings`}>
              {switchOf(data.source)}
            </a>
          )}
        </May>
      </Title>
      <Trouble text={error} />
      {data && <Facts {...data} />}
      {data && data.problems.length > 0 && (
        <ul class="problems">
          <SourceProblems source={id} problems={data.problems} isHere />
        </ul>
      )}
      {data && (
        <nav class="tabs" aria-label={`About ${id}`}>
          {tabs.map(([key, text, n]) => (
            <a
              key={key}
              href={key === 'timeline' ? place.path : `${place.path}?show=${key}`}
              aria-current={key === show ? 'page' : undefined}
            >
              {text}
              {n !== undefined && <span class="muted"> {count(n)}</span>}
            </a>
          ))}
        </nav>
      )}
      {show === 'timeline' && <Timeline path={path} place={place} />}
      {show === 'regions' && data && <Regions regions={data.regions} place={place} />}
      {show === 'rejected' && <Rejected path={path} place={place} />}
      {show === 'settings' && data && <Settings path={path} answer={data} />}
      {show === 'excluded' && <Excluded path={path} place={place} />}
    </>
  );
}

/** What an operator would do with the source as a whole. */
function switchOf({ configured, disabled }: SourceAnswer['source']): string {
  if (disabled !== null) return 'Enable …';
  return configured ? 'Disable …' : 'Retire …';
}

function RunNow({ id }: { id: string }) {
  const [told, setTold] = useState('');
  const [busy, setBusy] = useState(false);
  const run = async () => {
    setBusy(true);
    try {
      await act(`/api/sources/${encodeURIComponent(id)}/run`, {});
      setTold('A worker runs it as soon as it has room.');
    } catch (error) {
      setTold(error instanceof Error ? error.message : String(error));
    }
    setBusy(false);
  };
  return (
    <span class="action">
      <button type="button" disabled={busy} onClick={() => void run()}>
        Run now
      </button>{' '}
      <span class="muted" role="status">
        {told}
      </span>
    </span>
  );
}

function Facts({ source, scheduleInWords, nextSlots }: SourceAnswer) {
  return (
    <dl class="facts">
      <dt>Age of data</dt>
      <dd>
        <FreshnessBar {...source} />
      </dd>
      <dt>Last runs</dt>
      <dd>
        <RunStrip runs={source.runs} />
      </dd>
      <dt>Data changed</dt>
      <dd>
        {source.changedAt === null ? 'in none of the runs that are kept' : <Ago at={source.changedAt} />}
      </dd>
      <dt>Next runs</dt>
      <dd>
        {nextSlots.length === 0 ? (
          `none: it is ${source.disabled === null ? 'not configured here' : 'disabled'}`
        ) : (
          <>
            <Ahead at={source.nextSlot} />{' '}
            <span class="muted">
              (then{' '}
              {nextSlots
                .slice(1, 4)
                .map((slot) => utc(slot))
                .join(', ')}
              )
            </span>
          </>
        )}
      </dd>
      {scheduleInWords !== null && (
        <>
          <dt>Schedule</dt>
          <dd>
            {scheduleInWords}{' '}
            {!scheduleInWords.startsWith('cron ') && <span class="muted">({source.schedule})</span>}
          </dd>
        </>
      )}
      <dt>
        {source.kind === 'rates' ? 'Exchange rates' : source.kind === 'clusters' ? 'Clusters' : 'Machines'}
      </dt>
      <dd>
        {count(source.known)} known, {count(source.published)} published, {count(source.quarantined)} rows
        quarantined
      </dd>
    </dl>
  );
}

const REGIONS = 50;

/** How late a region is: those that cannot be read first, then the oldest. */
function urgency({ unreadSince, ageSeconds }: ShownRegion): number {
  if (unreadSince !== null) return Number.POSITIVE_INFINITY;
  return ageSeconds ?? Number.MAX_VALUE;
}

function Regions({ regions, place }: { regions: readonly ShownRegion[]; place: Place }) {
  const search = place.query.get('q') ?? '';
  const offset = Number(place.query.get('offset') ?? 0);
  const found = regions
    .filter(({ code }) => code.toLowerCase().includes(search.toLowerCase()))
    .sort((one, other) => urgency(other) - urgency(one) || one.code.localeCompare(other.code));
  return (
    <section aria-label="Regions">
      <search class="filters">
        <Search label="Search" value={search} onSearch={(q) => navigate(addressWith(place, { q }), true)} />
      </search>
      <table class="cards">
        <thead>
          <tr>
            <th scope="col">Region</th>
            <th scope="col">State</th>
            <th scope="col">Age of data</th>
            <th scope="col">Why it was not read</th>
          </tr>
        </thead>
        <tbody>
          {found.slice(offset, offset + REGIONS).map((region) => (
            <tr key={region.code}>
              <th scope="row" data-label="Region">
                {region.code}
              </th>
              <td data-label="State">
                <RegionState {...region} />
              </td>
              <td data-label="Age of data">
                <FreshnessBar {...region} />
              </td>
              <td data-label="Why">
                {region.reason ?? '–'}
                {region.unreadSince !== null && (
                  <span class="muted">
                    , since <Ago at={region.unreadSince} />
                  </span>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {found.length === 0 ? (
        <p class="calm">No region is like that.</p>
      ) : (
        <Pager place={place} total={found.length} limit={REGIONS} what="regions" />
      )}
    </section>
  );
}

function RegionState({ unreadSince, ageSeconds, objectiveSeconds }: ShownRegion) {
  if (unreadSince !== null) return <Badge tone="bad">{ageSeconds === null ? 'never read' : 'unread'}</Badge>;
  if (ageSeconds === null) return <Badge tone="bad">never read</Badge>;
  const isStale = objectiveSeconds !== null && ageSeconds > objectiveSeconds;
  return isStale ? <Badge tone="bad">stale</Badge> : <Badge tone="good">fresh</Badge>;
}
