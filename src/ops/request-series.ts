/**
 * Requests, counted in plain numbers: this happens at every answer, and looking up a labelled series would cost more
 * than giving the answer does. The library's own series are made of them when somebody asks.
 */
import {
  Counter,
  Histogram,
  type MetricObjectWithValues,
  type MetricValueWithName,
  type Registry,
} from 'prom-client';

/** What the API tells of a request. `route` is a pattern, never a path: no caller may make a series of his own. */
export interface RequestFacts {
  readonly route: string;
  readonly method: string;
  readonly status: number;
  readonly seconds: number;
  readonly tier: string | undefined;
}

/** The methods that are counted under their own names. */
const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', '(none)']);

/** Upper bounds of the durations that are told apart, in seconds. */
const BOUNDS = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 2.5, 10];

/** Statuses are below this. */
const STATUSES = 600;

class RouteSeries {
  /** Method → status → count. */
  readonly counts = new Map<string, Float64Array>();
  /** By the index of the first bound that a duration does not exceed; the last is for those beyond all. */
  readonly durations = new Float64Array(BOUNDS.length + 1);
  seconds = 0;

  add(method: string, status: number, seconds: number): void {
    const byStatus = this.counts.get(method) ?? this.#countsOf(METHODS.has(method) ? method : 'other');
    byStatus[status] = (byStatus[status] ?? 0) + 1;
    let bound = 0;
    while (seconds > (BOUNDS[bound] ?? Number.POSITIVE_INFINITY)) bound += 1;
    this.durations[bound] = (this.durations[bound] ?? 0) + 1;
    this.seconds += seconds;
  }

  #countsOf(method: string): Float64Array {
    let byStatus = this.counts.get(method);
    if (!byStatus) {
      byStatus = new Float64Array(STATUSES);
      this.counts.set(method, byStatus);
    }
    return byStatus;
  }
}

/** Adds the series of requests to a registry. @returns what is to be told of each request */
export function requestSeries(registry: Registry): (facts: RequestFacts) => void {
  const routes = new Map<string, RouteSeries>();
  const tiers = new Map<string, number>();
  const registers = [registry];
  new Counter({
    name: 'fleetbook_http_requests_total',
    help: 'Requests that were answered, by route pattern, method and status',
    labelNames: ['route', 'method', 'status'],
    registers,
    collect() {
      this.reset();
      for (const [route, { counts }] of routes)
        for (const [method, byStatus] of counts)
          byStatus.forEach((count, status) => {
            if (count > 0) this.inc({ route, method, status }, count);
          });
    },
  });
  new DurationHistogram(routes, registry);
  new Counter({
    name: 'fleetbook_reads_total',
    help: 'Answers by the tier that gave them',
    labelNames: ['tier'],
    registers,
    collect() {
      this.reset();
      for (const [tier, count] of tiers) this.inc({ tier }, count);
    },
  });
  return ({ route, method, status, seconds, tier }) => {
    let series = routes.get(route);
    if (!series) {
      series = new RouteSeries();
      routes.set(route, series);
    }
    series.add(method, status, seconds);
    if (tier !== undefined) tiers.set(tier, (tiers.get(tier) ?? 0) + 1);
  };
}

type Durations = MetricObjectWithValues<MetricValueWithName<'route' | 'le'>>;

const DURATIONS = {
  name: 'fleetbook_http_request_duration_seconds',
  help: 'Time from the header fields of a request to the end of its answer',
  labelNames: ['route'],
} as const;

/** A histogram that is told counts instead of observations. */
class DurationHistogram extends Histogram<'route'> {
  readonly #routes: ReadonlyMap<string, RouteSeries>;
  /** Says what there is to say of such a metric beside its values. */
  readonly #empty = new Histogram<'route'>({ ...DURATIONS, buckets: BOUNDS, registers: [] });

  constructor(routes: ReadonlyMap<string, RouteSeries>, registry: Registry) {
    super({ ...DURATIONS, buckets: BOUNDS, registers: [registry] });
    this.#routes = routes;
  }

  override async get(): Promise<Durations> {
    const { name } = DURATIONS;
    const values = [...this.#routes].flatMap(([route, { durations, seconds }]) => {
      let count = 0;
      const buckets = [...durations].map((those, i) => {
        count += those;
        return { metricName: `${name}_bucket`, labels: { le: BOUNDS[i] ?? '+Inf', route }, value: count };
      });
      return [
        ...buckets,
        { metricName: `${name}_sum`, labels: { route }, value: seconds },
        { metricName: `${name}_count`, labels: { route }, value: count },
      ];
    });
    return { ...(await this.#empty.get()), values };
  }

  /** By which name the library asks when it writes text. */
  getForPromString(): Promise<Durations> {
    return this.get();
  }
}
