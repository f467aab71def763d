/** The metrics of several processes on one page. */
import { AggregatorRegistry, type Registry } from 'prom-client';
import { Slice } from '../domain/event-loop.ts';

/** Series of one step: each takes some microseconds, and those of all routes take milliseconds. */
const SERIES_PER_STEP = 50;

/**
 * Shows a registry in slices, some series of one metric at a time. Each metric is read after the one before, so none may wait for a
 * server.
 */
async function shownInSlices<T>(
  registry: Registry,
  show: (part: Registry, isFirst: boolean) => Promise<T>,
): Promise<T[]> {
  const shown: T[] = [];
  const slice = new Slice();
  for (const { name } of registry.getMetricsAsArray()) {
    const metric = await registry.getSingleMetric(name)?.get();
    if (!metric) continue;
    // A metric without series has its description.
    for (let from = 0; from === 0 || from < metric.values.length; from += SERIES_PER_STEP) {
      const values = metric.values.slice(from, from + SERIES_PER_STEP);
      const get = async () => ({ ...metric, values });
      // Its series get the labels of the registry.
      const part: Registry = Object.assign(Object.create(registry), { getMetricsAsArray: () => [{ get }] });
      shown.push(await show(part, from === 0));
      if (slice.isOver) await slice.next();
    }
  }
  return shown;
}

/** Returns the page of one process, as the library does, but in slices. */
export async function metricsInSlices(registry: Registry): Promise<string> {
  const texts = await shownInSlices(registry, async (part, isFirst) => {
    const text = await part.metrics();
    return isFirst ? text : text.replace(/^(?:#.*\n)+/, '');
  });
  return texts.join('');
}

/** Returns what `exportMetrics` does, in slices. A metric of many series has several entries, whose series are added up. */
export async function exportInSlices(registry: Registry): Promise<unknown> {
  return (await shownInSlices(registry, (part) => part.getMetricsAsJSON())).flat();
}

export const exportMetrics = (registry: Registry): Promise<unknown> => registry.getMetricsAsJSON();

interface Exported {
  readonly type?: string;
  readonly name: string;
  readonly values: readonly { readonly value: number }[];
}

export const joinMetrics = (exported: readonly unknown[]): Promise<unknown> =>
  aggregated(exported).getMetricsAsJSON();

/** Returns the exports as Prometheus text. Equal series are added up, unless the metric has another aggregator. */
export const mergeMetrics = (exported: readonly unknown[]): Promise<string> => aggregated(exported).metrics();

function aggregated(exported: readonly unknown[]): Registry {
  return AggregatorRegistry.aggregate(
    exported.filter(Array.isArray).map((metrics) => valid(metrics).map(finite)),
  );
}

/** Skips what a process without an answer, or of another release, sent instead of metrics. */
const valid = (metrics: unknown): Exported[] => (Array.isArray(metrics) ? metrics.filter(isExported) : []);

function isExported(metric: unknown): metric is Exported {
  return (
    typeof metric === 'object' &&
    metric !== null &&
    'name' in metric &&
    'values' in metric &&
    Array.isArray(metric.values)
  );
}

/** Removes values that are no numbers: another process sends NaN, e.g. of an empty histogram, as null. */
function finite(metric: Exported): Exported {
  return {
    ...metric,
    values: metric.values.filter(({ value }) => typeof value === 'number' && !Number.isNaN(value)),
  };
}

export interface ProcessExport {
  readonly pid: number;
  readonly metrics: unknown;
}

/** Sums the metrics of processes. Counts of ended processes stay: Prometheus takes a falling sum for a restart. */
export class ProcessExports {
  readonly #last = new Map<number, unknown>();
  #ended: unknown = [];
  #turn: Promise<unknown> = Promise.resolve();

  /** @param answers a process without an answer counts with its last one @param running pids of the current processes */
  add(answers: readonly unknown[], running: ReadonlySet<number>): Promise<readonly unknown[]> {
    // One call after the other: two scrapes at once must not both add the same process to the ended ones.
    const turn = this.#turn.then(() => this.#add(answers, running));
    this.#turn = turn.catch(() => {});
    return turn;
  }

  async #add(answers: readonly unknown[], running: ReadonlySet<number>): Promise<readonly unknown[]> {
    for (const answer of answers) if (isProcessExport(answer)) this.#last.set(answer.pid, answer.metrics);
    const ended = [...this.#last].filter(([pid]) => !running.has(pid));
    if (ended.length > 0) {
      this.#ended = await joinMetrics([this.#ended, ...ended.map(([, metrics]) => counted(metrics))]);
      for (const [pid] of ended) this.#last.delete(pid);
    }
    return [this.#ended, ...this.#last.values()];
  }
}

function isProcessExport(answer: unknown): answer is ProcessExport {
  return typeof answer === 'object' && answer !== null && 'pid' in answer && 'metrics' in answer;
}

/** Returns the metrics that only grow: the gauges of an ended process mean nothing. */
const counted = (metrics: unknown): Exported[] =>
  valid(metrics).filter(({ type }) => type === 'counter' || type === 'histogram');
