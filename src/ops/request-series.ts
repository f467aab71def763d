import {
  Counter,
  Histogram,
  type MetricObjectWithValues,
  type MetricValueWithName,
  type Registry,
} from 'prom-client';
import {
  BOUNDS,
  type Durations,
  LASTING_BOUNDS,
  type RequestCounts,
  type RouteCounts,
} from './request-counts.ts';

export function addRequestSeries(registry: Registry, { routes, tiers }: RequestCounts): void {
  const registers = [registry];
  new Counter({
    name: 'fleetbook_http_requests_total',
    help: 'Answered requests, by route pattern, method and status',
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
  new DurationHistogram(routes, ORDINARY, registry);
  new DurationHistogram(routes, LASTING, registry);
  new Counter({
    name: 'fleetbook_reads_total',
    help: 'Answers by tier',
    labelNames: ['tier'],
    registers,
    collect() {
      this.reset();
      for (const [tier, count] of tiers) this.inc({ tier }, count);
    },
  });
}

type Values = MetricObjectWithValues<MetricValueWithName<'route' | 'le'>>;

interface DurationSeries {
  readonly name: string;
  readonly help: string;
  readonly bounds: number[];
  of(route: RouteCounts): Durations | undefined;
}

const ORDINARY: DurationSeries = {
  name: 'fleetbook_http_request_duration_seconds',
  help: 'Time from the header fields of a request to the end of its answer, without streams, downloads and requests that waited',
  bounds: BOUNDS,
  of: ({ durations }) => durations,
};

const LASTING: DurationSeries = {
  name: 'fleetbook_http_lasting_request_duration_seconds',
  help: 'The same for downloads and requests that waited for changes; for a stream, the time until it began',
  bounds: LASTING_BOUNDS,
  of: ({ lasting }) => lasting,
};

/** A histogram that reads counts and gets no observations. */
class DurationHistogram extends Histogram<'route'> {
  readonly #routes: ReadonlyMap<string, RouteCounts>;
  readonly #series: DurationSeries;
  readonly #empty: Histogram<'route'>;

  constructor(routes: ReadonlyMap<string, RouteCounts>, series: DurationSeries, registry: Registry) {
    const { name, help, bounds: buckets } = series;
    const described = { name, help, buckets, labelNames: ['route'] as const };
    super({ ...described, registers: [registry] });
    this.#empty = new Histogram<'route'>({ ...described, registers: [] });
    this.#routes = routes;
    this.#series = series;
  }

  override async get(): Promise<Values> {
    const { name, bounds, of } = this.#series;
    const values = [...this.#routes].flatMap(([route, counts]) => {
      const durations = of(counts);
      if (!durations) return [];
      let count = 0;
      const buckets = [...durations.buckets].map((those, i) => {
        count += those;
        return { metricName: `${name}_bucket`, labels: { le: bounds[i] ?? '+Inf', route }, value: count };
      });
      return [
        ...buckets,
        { metricName: `${name}_sum`, labels: { route }, value: durations.seconds },
        { metricName: `${name}_count`, labels: { route }, value: count },
      ];
    });
    return { ...(await this.#empty.get()), values };
  }

  /** The library calls this name when it writes text. */
  getForPromString(): Promise<Values> {
    return this.get();
  }
}
