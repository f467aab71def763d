/** Makes lines of charts from what processes have reported. */
import { type ReaderReport, STATUS_CLASSES } from '../domain/report.ts';
import type { DatedReport, Reported } from './reported.ts';
import { BOUNDS } from './request-counts.ts';

/** One value for each step of time; null where nobody has reported, which is not the same as 0. */
export type Line = readonly (number | null)[];

export interface Lines {
  /** Start of the first step, seconds since 1970. */
  readonly from: number;
  /** Seconds. */
  readonly step: number;
  /** Answers a second, by class of status. */
  readonly requests: Readonly<Record<string, Line>>;
  /** Seconds, by quantile. */
  readonly latency: Readonly<Record<'p50' | 'p95' | 'p99', Line>>;
  /** Shares of what tiers have answered, from 0 to 1. */
  readonly tiers: Readonly<Record<'memory' | 'redis' | 'postgres', Line>>;
  /** Seconds for which the cache lacked what it lacked. */
  readonly lag: Line;
  /** Documents that were dirty. */
  readonly dirty: Line;
  /** Queue → jobs that waited. */
  readonly waiting: Readonly<Record<string, Line>>;
}

/** A step is at least as long: longer than a process needs from one report to the next. */
const SHORTEST_STEP_S = 15;
const STEPS_AT_MOST = 240;
/** What is younger has not been reported by all. */
const YOUNG_MS = 11_000;
const QUANTILES = { p50: 0.5, p95: 0.95, p99: 0.99 } as const;
const TIERS = ['memory', 'redis', 'postgres'] as const;

type Dated<T> = Extract<DatedReport, { kind: T }>;

/** The lines of the last `minutes`, up to what all processes have had the time to report. */
export function linesOf({ now, reports }: Reported, minutes: number): Lines {
  const seconds = minutes * 60;
  const step = Math.max(1, Math.ceil(seconds / STEPS_AT_MOST / SHORTEST_STEP_S)) * SHORTEST_STEP_S;
  const to = Math.floor((now - YOUNG_MS) / 1000 / step) * step;
  const from = to - Math.floor(seconds / step) * step;
  const time: Time = { from, step, steps: Math.floor(seconds / step) };
  const ofReaders = readerSteps(
    reports.filter((report): report is Dated<'reader'> => report.kind === 'reader'),
    time,
  );
  const ofWorkers = reports.filter((report): report is Dated<'worker'> => report.kind === 'worker');
  const line = (value: (step: ReaderStep) => number | null): Line =>
    ofReaders.map((each) => each && value(each));
  const byName = <N extends string>(names: readonly N[], lineOf: (name: N) => Line) =>
    Object.fromEntries(names.map((name) => [name, lineOf(name)])) as Record<N, Line>;
  const queues = [...new Set(ofWorkers.flatMap(({ waiting }) => Object.keys(waiting ?? {})))];
  return {
    from,
    step,
    requests: byName(STATUS_CLASSES, (name) =>
      line(({ statuses, seconds }) => (statuses[STATUS_CLASSES.indexOf(name)] ?? 0) / seconds),
    ),
    latency: byName(['p50', 'p95', 'p99'], (name) =>
      line(({ durations }) => quantile(QUANTILES[name], durations)),
    ),
    tiers: byName(TIERS, (name) => line(({ tiers }) => share(tiers[name] ?? 0, Object.values(tiers)))),
    lag: highest(ofWorkers, time, ({ lagSeconds }) => lagSeconds),
    dirty: highest(ofWorkers, time, ({ dirty }) => dirty),
    waiting: byName(queues, (name) => highest(ofWorkers, time, ({ waiting }) => waiting?.[name] ?? null)),
  };
}

interface Time {
  readonly from: number;
  readonly step: number;
  readonly steps: number;
}

/** All that was answered in one step. */
interface ReaderStep {
  /** Seconds of the step of which somebody has told. */
  seconds: number;
  readonly statuses: number[];
  readonly durations: number[];
  readonly tiers: Record<string, number>;
}

/** Each report is dealt out to the steps that its time lies in. Null where half of a step or more was told by nobody. */
function readerSteps(
  reports: readonly Dated<'reader'>[],
  { from, step, steps }: Time,
): (ReaderStep | null)[] {
  const sums: ReaderStep[] = Array.from({ length: steps }, () => ({
    seconds: 0,
    statuses: [],
    durations: [],
    tiers: {},
  }));
  /** Seconds of each step that each process has told of. */
  const told = new Map<string, Float64Array>();
  for (const report of reports) {
    const ends = report.at / 1000;
    const begins = ends - report.seconds;
    const covered = told.get(report.process) ?? new Float64Array(steps);
    told.set(report.process, covered);
    const first = Math.max(0, Math.floor((begins - from) / step));
    for (let i = first; i < steps && from + i * step < ends; i++) {
      const start = from + i * step;
      const overlap = Math.min(ends, start + step) - Math.max(begins, start);
      const sum = sums[i];
      if (sum === undefined || overlap <= 0 || report.seconds === 0) continue;
      covered[i] = (covered[i] ?? 0) + overlap;
      addPart(sum, report, overlap / report.seconds);
    }
  }
  return sums.map((sum, i) => {
    sum.seconds = Math.min(step, Math.max(0, ...[...told.values()].map((covered) => covered[i] ?? 0)));
    return sum.seconds > step / 2 ? sum : null;
  });
}

function addPart(sum: ReaderStep, report: ReaderReport, part: number): void {
  for (const [i, count] of report.statuses.entries()) sum.statuses[i] = (sum.statuses[i] ?? 0) + count * part;
  for (const [tier, count] of Object.entries(report.tiers))
    sum.tiers[tier] = (sum.tiers[tier] ?? 0) + count * part;
  // A release with other bounds, while one replaces the other, has durations that cannot be added to ours.
  if (report.durations.length !== BOUNDS.length + 1) return;
  for (const [i, count] of report.durations.entries())
    sum.durations[i] = (sum.durations[i] ?? 0) + count * part;
}

/**
 * As Prometheus' `histogram_quantile`: the durations of a bucket are taken to be spread evenly over it, and those
 * beyond the last bound to be at it. Null where there are none.
 * @param counts of each bucket alone, not of all up to it
 */
export function quantile(share: number, counts: readonly number[]): number | null {
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total <= 0) return null;
  const rank = share * total;
  let below = 0;
  for (const [i, count] of counts.entries()) {
    const bound = BOUNDS[i];
    if (bound === undefined) break;
    if (count > 0 && below + count >= rank) {
      const start = BOUNDS[i - 1] ?? 0;
      return start + (bound - start) * ((rank - below) / count);
    }
    below += count;
  }
  return BOUNDS.at(-1) ?? null;
}

function share(part: number, all: readonly number[]): number | null {
  const total = all.reduce((sum, count) => sum + count, 0);
  return total > 0 ? part / total : null;
}

/** The highest value that was reported in each step. */
function highest(
  reports: readonly Dated<'worker'>[],
  { from, step, steps }: Time,
  value: (report: Dated<'worker'>) => number | null,
): Line {
  const line = Array.from({ length: steps }, (): number | null => null);
  for (const report of reports) {
    const i = Math.floor((report.at / 1000 - from) / step);
    const found = value(report);
    if (i >= 0 && i < steps && found !== null) line[i] = Math.max(line[i] ?? 0, found);
  }
  return line;
}

/** Which processes have reported, and when the last of them did. */
export interface Reporters {
  /** Those of the last half a minute. */
  readonly processes: number;
  /** Milliseconds since 1970; null where there was none for hours. */
  readonly last: number | null;
}

const PRESENT_MS = 30_000;

export function reportersOf({ now, reports }: Reported, kind: DatedReport['kind']): Reporters {
  const those = reports.filter((report) => report.kind === kind);
  const present = those.filter(({ at }) => at > now - PRESENT_MS);
  return {
    processes: new Set(present.map(({ process }) => process)).size,
    last: those.length === 0 ? null : Math.max(...those.map(({ at }) => at)),
  };
}
