/** How much is asked, how fast it is answered and by whom, and how far publication and queues are behind. */
import { useMemo } from 'preact/hooks';
import type { ChartsAnswer, ShownReporters } from '../../ops/console/api.ts';
import { useData } from '../lib/data.ts';
import { counted, span } from '../lib/format.ts';
import { useTick } from '../lib/live.ts';
import { addressWith, navigate, type Place } from '../lib/router.ts';
import { Choice, Trouble } from '../parts/basics.tsx';
import { type ChartLine, LineChart } from '../parts/line-chart.tsx';

/** Processes report as often. */
const ASK_EVERY_MS = 10_000;
/** A process that has been silent for longer has missed some of its reports. */
const SILENT_S = 45;

const digits = (value: number) => String(Number(value.toPrecision(3)));
const rate = (value: number) => `${digits(value)}/s`;
const share = (value: number) => `${digits(value * 100)} %`;
const jobs = (value: number) => value.toLocaleString('en');
const duration = (seconds: number) => (seconds < 1 ? `${digits(seconds * 1000)} ms` : `${digits(seconds)} s`);
const lag = (seconds: number) => (seconds < 60 ? `${digits(seconds)} s` : span(seconds));

const NO_LINES = {
  requests: { '2xx': [], '3xx': [], '4xx': [], '5xx': [] },
  latency: { p50: [], p95: [], p99: [] },
  tiers: { memory: [], redis: [], postgres: [] },
} as const;

export function Charts({ place }: { place: Place }) {
  const minutes = place.query.get('minutes') ?? '60';
  const tick = useTick(ASK_EVERY_MS);
  const { data, error } = useData<ChartsAnswer>(`/api/charts?minutes=${encodeURIComponent(minutes)}`, tick);
  const shown = useMemo(() => prepared(data), [data]);
  const readers = reporting('reader', data?.readers, data?.now);
  const workers = reporting('worker', data?.workers, data?.now);
  const common = { times: shown.times };
  const empty = (of: Reporting) => (data === undefined ? '' : of.why);
  return (
    <section aria-labelledby="charts">
      <h2 id="charts">Traffic and publication</h2>
      <div class="charts-head">
        <Choice
          label="Time"
          value={minutes}
          options={[
            ['15', 'last 15 minutes'],
            ['60', 'last hour'],
            ['180', 'last 3 hours'],
          ]}
          onChoose={(chosen) =>
            navigate(addressWith(place, { minutes: chosen === '60' ? '' : chosen }), true)
          }
        />
        <p class={readers.isSilent || workers.isSilent ? 'warned' : 'muted'} role="status">
          {data && `${readers.text} ${workers.text}`}
        </p>
      </div>
      <Trouble text={error} />
      <div class="charts">
        <LineChart
          {...common}
          title="Requests"
          lines={shown.requests}
          write={rate}
          atLeast={1}
          empty={empty(readers)}
        />
        <LineChart
          {...common}
          title="Latency"
          lines={shown.latency}
          write={duration}
          atLeast={0.001}
          empty={empty(readers)}
        />
        <LineChart
          {...common}
          title="Answers by tier"
          lines={shown.tiers}
          write={share}
          isStacked
          atLeast={1}
          empty={empty(readers)}
        />
        <LineChart
          {...common}
          title="Publication lag"
          lines={shown.lag}
          write={lag}
          atLeast={1}
          empty={empty(workers)}
        />
        <LineChart
          {...common}
          title="Jobs that wait"
          lines={shown.waiting}
          write={jobs}
          isWhole
          atLeast={5}
          empty={empty(workers)}
        />
      </div>
    </section>
  );
}

interface Reporting {
  readonly isSilent: boolean;
  /** A sentence. */
  readonly text: string;
  /** Why there may be nothing to draw, a sentence. */
  readonly why: string;
}

function reporting(
  what: 'reader' | 'worker',
  of: ShownReporters | undefined,
  now: string | undefined,
): Reporting {
  if (of === undefined || now === undefined) return { isSilent: false, text: '', why: '' };
  if (of.lastReport === null) {
    const text = `No ${what} has reported in the last hours.`;
    const remedy = what === 'reader' ? 'fleetbook serve' : 'fleetbook work';
    return { isSilent: true, text, why: `${text} Is one running? Start it with ${remedy}.` };
  }
  const silent = (Date.parse(now) - Date.parse(of.lastReport)) / 1000;
  if (silent > SILENT_S) {
    const text = `No ${what} has reported for ${span(silent)}.`;
    return { isSilent: true, text, why: text };
  }
  return {
    isSilent: false,
    text: `${counted(of.processes, what)} ${of.processes === 1 ? 'reports' : 'report'}.`,
    why: what === 'reader' ? 'Nothing was asked in this time.' : 'Nothing was told of it in this time.',
  };
}

function prepared(data: ChartsAnswer | undefined) {
  const { requests, latency, tiers } = data ?? NO_LINES;
  const lines = (named: Readonly<Record<string, readonly (number | null)[]>>): ChartLine[] =>
    Object.entries(named).map(([name, values]) => ({ name, values }));
  const lagLines: ChartLine[] = [{ name: 'behind for', values: data?.lag ?? [] }];
  return {
    times: (data?.lag ?? []).map((_, i) => (data?.from ?? 0) + i * (data?.step ?? 0)),
    requests: lines(requests),
    latency: lines(latency),
    tiers: lines(tiers),
    lag: lagLines,
    waiting: lines(data?.waiting ?? {}),
  };
}
