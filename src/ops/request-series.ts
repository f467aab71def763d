/** Requests as the library's own series, made of plain counts when somebody asks. */
import {
  Counter,
  Histogram,
  type MetricObjectWithValues,
  type MetricValueWithName,
  type Registry,
} from 'prom-client';
import { BOUNDS, type RequestCounts, type RouteCounts } from './request-counts.ts';

/** Adds the series of requests to a registry. */
export function addRequestSeries(registry: Registry, { routes, tiers }: RequestCounts): void {
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
}

type Durations = MetricObjectWithValues<MetricValueWithName<'route' | 'le'>>;

const DURATIONS = {
  name: 'fleetbook_http_request_duration_seconds',
  help: 'Time from the header fields of a request to the end of its answer',
  labelNames: ['route'],
} as const;

/** A histogram that is told counts instead of observations. */
class DurationHistogram extends Histogram<'route'> {
  readonly #routes: ReadonlyMap<string, RouteCounts>;
  /** Says what there is to say of such a metric beside its values. */
  readonly #empty = new Histogram<'route'>({ ...DURATIONS, buckets: BOUNDS, registers: [] });

  constructor(routes: ReadonlyMap<string, RouteCounts>, registry: Registry) {
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
