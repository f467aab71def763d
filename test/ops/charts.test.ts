import { describe, expect, it } from 'vitest';
import type { ReaderReport, WorkerReport } from '../../src/domain/report.ts';
import { linesOf, quantile, reportersOf } from '../../src/ops/charts.ts';
import type { DatedReport } from '../../src/ops/reported.ts';
import { BOUNDS, RequestCounts } from '../../src/ops/request-counts.ts';

/** So that steps of 15 s begin here. */
const NOW = Date.UTC(2026, 10, 22, 12, 0, 0);
const ago = (seconds: number) => NOW - seconds * 1000;

const buckets = (counts: Readonly<Record<number, number>>) =>
  Array.from({ length: BOUNDS.length + 1 }, (_, i) => counts[i] ?? 0);

function reader(at: number, seconds: number, more: Partial<ReaderReport> = {}): DatedReport {
  const nothing = { statuses: [0, 0, 0, 0], durations: buckets({}), tiers: {} };
  return { kind: 'reader', process: 'a', number: 0, seconds, ...nothing, ...more, at };
}

function worker(at: number, more: Partial<WorkerReport> = {}): DatedReport {
  const nothing = { lagSeconds: null, dirty: null, waiting: null };
  return { kind: 'worker', process: 'w', number: 0, seconds: 10, ...nothing, ...more, at };
}

const lines = (reports: readonly DatedReport[], minutes = 5) => linesOf({ now: NOW, reports }, minutes);
/** The last steps of a line. What is not told by all yet ends 15 s before now. */
const last = (line: readonly (number | null)[] | undefined, count = 3) => line?.slice(-count);

describe('lines of charts', () => {
  it('cover the time that is asked for, in steps that are few enough to be drawn', () => {
    for (const minutes of [5, 60, 180]) {
      const { from, step, requests } = lines([], minutes);
      expect(requests['2xx']?.length).toBeLessThanOrEqual(240);
      expect((requests['2xx']?.length ?? 0) * step).toBe(minutes * 60);
      const to = from + minutes * 60;
      expect(NOW / 1000 - to).toBeGreaterThanOrEqual(11);
      expect(NOW / 1000 - to).toBeLessThan(11 + step);
    }
  });

  it('are empty, and not 0, where nobody has told anything', () => {
    const { requests, latency, tiers, lag, dirty } = lines([]);
    for (const line of [requests['2xx'], latency.p50, tiers.memory, lag, dirty])
      expect(new Set(line)).toEqual(new Set([null]));
  });

  it('are 0 where somebody has told that nothing was asked, and have no latency and no share then', () => {
    const { requests, latency, tiers } = lines([reader(ago(15), 30)]);
    expect(last(requests['2xx'])).toEqual([null, 0, 0]);
    expect(last(latency.p99)).toEqual([null, null, null]);
    expect(last(tiers.memory)).toEqual([null, null, null]);
  });

  it('add up what several processes have answered, each in its own time', () => {
    // 30 answers in 30 s of one, 60 in 15 s of the other.
    const { requests } = lines([
      reader(ago(15), 30, { statuses: [30, 0, 3, 0] }),
      reader(ago(30), 15, { process: 'b', statuses: [60, 0, 0, 15] }),
    ]);
    expect(last(requests['2xx'])).toEqual([null, 5, 1]);
    expect(last(requests['4xx'])).toEqual([null, 0.1, 0.1]);
    expect(last(requests['5xx'])).toEqual([null, 1, 0]);
  });

  it('count a report that lies across steps once', () => {
    const reports = [0, 1, 2, 3].map((i) =>
      reader(ago(56 - i * 10), 10, { number: i, statuses: [50, 0, 0, 0] }),
    );
    const { requests, step } = lines(reports);
    const rates = (requests['2xx'] ?? []).filter((rate) => rate !== null);
    for (const rate of rates) expect(rate).toBeCloseTo(5);
    // From 66 s ago to 15 s ago: the step that was told of by less than a half is left out.
    expect(rates.length * step).toBeGreaterThanOrEqual(30);
  });

  it('do not fall where a process began in the midst of a step', () => {
    const { requests } = lines([reader(ago(15), 9, { statuses: [90, 0, 0, 0] })]);
    expect(last(requests['2xx'])).toEqual([null, null, 10]);
  });

  it('have the quantiles of all durations, and the shares of all tiers', () => {
    const { latency, tiers } = lines([
      reader(ago(15), 15, { durations: buckets({ 0: 50 }), tiers: { memory: 60, redis: 20 } }),
      reader(ago(15), 15, { process: 'b', durations: buckets({ 5: 50 }), tiers: { postgres: 20 } }),
    ]);
    expect(last(latency.p50, 1)).toEqual([BOUNDS[0]]);
    expect(last(latency.p95, 1)?.[0]).toBeCloseTo(0.0025 + 0.0025 * 0.9);
    expect([tiers.memory, tiers.redis, tiers.postgres].map((line) => last(line, 1)?.[0])).toEqual([
      0.6, 0.2, 0.2,
    ]);
  });

  it('leave out durations of a release that has other bounds', () => {
    const { latency, requests } = lines([
      reader(ago(15), 15, { statuses: [15, 0, 0, 0], durations: [1, 2] }),
    ]);
    expect([last(latency.p50, 1), last(requests['2xx'], 1)]).toEqual([[null], [1]]);
  });

  it('show the highest that any worker has seen in a step, and do not add them up', () => {
    const { lag, waiting, dirty } = lines([
      worker(ago(20), { lagSeconds: 2, dirty: 7, waiting: { sync: 3 } }),
      worker(ago(18), { process: 'x', lagSeconds: 5, dirty: 7, waiting: { sync: 2, alerts: 0 } }),
      worker(ago(40), { lagSeconds: 0 }),
    ]);
    expect(last(lag)).toEqual([null, 0, 5]);
    expect(last(dirty, 1)).toEqual([7]);
    expect(last(waiting.sync, 1)).toEqual([3]);
    expect(last(waiting.alerts)).toEqual([null, null, 0]);
  });
});

describe('a quantile', () => {
  /** The numbers of the table in Prometheus' documentation would do as well: these are worked out by hand. */
  it.each<[share: number, counts: Readonly<Record<number, number>>, found: number | null]>([
    [0.5, {}, null],
    [0.5, { 0: 1 }, 0.00005],
    [0.99, { 3: 100 }, 0.0005 + 0.0005 * 0.99],
    [0.5, { 0: 10, 9: 10 }, 0.0001],
    [0.75, { 0: 10, 9: 10 }, 0.05 + 0.05 * 0.5],
    [0.99, { 0: 10, 16: 10 }, 10],
  ])('%d of %o is %d', (share, counts, found) => {
    const value = quantile(share, buckets(counts));
    if (found === null) expect(value).toBeNull();
    else expect(value).toBeCloseTo(found, 12);
  });

  it('is near the true one, of durations that were counted as requests are', () => {
    const counts = new RequestCounts();
    const seconds = Array.from({ length: 2000 }, (_, i) => 0.001 + i * 0.0000245);
    for (const each of seconds)
      counts.add({ route: '/x', method: 'GET', status: 200, seconds: each, tier: undefined });
    const durations = [...(counts.routes.get('/x')?.durations.buckets ?? [])];
    expect(quantile(0.5, durations)).toBeCloseTo(seconds[1000] ?? 0, 2);
    expect(quantile(0.95, durations)).toBeCloseTo(seconds[1900] ?? 0, 2);
  });
});

it('says which processes report, and when the last one did', () => {
  const reports = [reader(ago(200), 10), reader(ago(20), 10, { process: 'b' }), worker(ago(90))];
  expect(reportersOf({ now: NOW, reports }, 'reader')).toEqual({ processes: 1, last: ago(20) });
  expect(reportersOf({ now: NOW, reports }, 'worker')).toEqual({ processes: 0, last: ago(90) });
  expect(reportersOf({ now: NOW, reports: [] }, 'worker')).toEqual({ processes: 0, last: null });
});
