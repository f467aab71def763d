/** Charts of the last day: runs, changed rows and jobs. */
import { useMemo } from 'preact/hooks';
import type { ChartsAnswer } from '../../../../../src/features/console/routes/answers.ts';
import { useData } from '../../lib/data.ts';
import { ago, count, counted, span, utc } from '../../lib/format.ts';
import { useNow, useTick } from '../../lib/live.ts';
import { ErrorText } from '../../parts/basics.tsx';
import { type ChartLine, LineChart } from '../../parts/line-chart.tsx';

const REFRESH_MS = 30_000;

const digits = (value: number) => String(Number(value.toPrecision(3)));
const duration = (seconds: number) =>
  seconds < 1 ? `${digits(seconds * 1000)} ms` : seconds < 60 ? `${digits(seconds)} s` : span(seconds);

export function Charts() {
  const tick = useTick(REFRESH_MS);
  const { data, error } = useData<ChartsAnswer>('/api/charts', tick);
  return (
    <section aria-labelledby="charts">
      <h2 id="charts">The last 24 hours</h2>
      <ErrorText text={error} />
      {data && <Waiting {...data} />}
      {data && <Lines data={data} />}
      <p class="muted">
        Each value covers half an hour. For requests per second, latency and cache tiers, let Prometheus
        scrape <a href="/metrics">/metrics</a> of each process, and import{' '}
        <code>docs/monitoring/dashboard.json</code> into Grafana.
      </p>
    </section>
  );
}

function Waiting({ publication, held }: ChartsAnswer) {
  const now = useNow();
  const { documents, behindSince } = publication;
  return (
    <div class="charts-head">
      <p class={behindSince === null ? 'muted' : 'warned'} role="status">
        {documents === 0
          ? 'All documents are published.'
          : `${counted(documents, 'document')} ${documents === 1 ? 'waits' : 'wait'} for publication.`}
        {behindSince !== null && ` The alert publication_behind opened ${ago(behindSince, now)}.`}{' '}
        {held.oldest === null
          ? 'No batch is held.'
          : `${counted(held.batches, 'batch')} ${held.batches === 1 ? 'is' : 'are'} held, the oldest since ${utc(held.oldest)}.`}
      </p>
    </div>
  );
}

function Lines({ data }: { data: ChartsAnswer }) {
  const { times } = data;
  const charts = useMemo(
    () => [
      { title: 'Runs', lines: lines(data.runs), atLeast: 5 },
      { title: 'Duration of runs', lines: lines(data.seconds), atLeast: 1, write: duration },
      { title: 'Rows changed', lines: lines(data.rows), atLeast: 5 },
      { title: 'Jobs completed', lines: lines(data.jobs?.completed ?? {}), atLeast: 5 },
      { title: 'Jobs failed', lines: lines(data.jobs?.failed ?? {}), atLeast: 5 },
    ],
    [data],
  );
  return (
    <div class="charts">
      {charts.map(({ write, ...chart }) => (
        <LineChart
          key={chart.title}
          {...chart}
          times={times}
          write={write ?? count}
          isWhole={write === undefined}
          empty={write ? 'No run ended in this time.' : 'The queues’ Redis does not answer.'}
        />
      ))}
    </div>
  );
}

const lines = (named: Readonly<Record<string, readonly (number | null)[]>>): ChartLine[] =>
  Object.entries(named).map(([name, values]) => ({ name, values }));
