import { Counter, Histogram, type Registry } from 'prom-client';
import {
  BOUNDS,
  type Durations,
  LASTING_BOUNDS,
  type RequestCounts,
  type RouteCounts,
} from './request-counts.ts';

export function addRequestSeries(registry: Registry, requests: RequestCounts): void {
  const { routes, tiers, unusable } = requests;
  const registers = [registry];
  const counted = new Counter({
    name: 'fleetbook_http_requests_total',
    help: 'Answered requests, by route pattern, method and status',
    labelNames: ['route', 'method', 'status'],
    registers,
  });
  readFrom(counted, () => {
    const series: Series[] = [];
    for (const [route, { counts }] of routes)
      for (const [method, byStatus] of counts)
        byStatus.forEach((value, status) => {
          if (value > 0) series.push({ labels: { route, method, status }, value });
        });
    return series;
  });
  addDurations(registry, requests, ({ durations }) => durations, {
    name: 'fleetbook_http_request_duration_seconds',
    help: 'Time from the header fields of a request to the end of its answer, without streams, downloads and requests that waited',
    buckets: BOUNDS,
  });
  addDurations(registry, requests, ({ lasting }) => lasting, {
    name: 'fleetbook_http_lasting_request_duration_seconds',
    help: 'The same for downloads and requests that waited for changes; for a stream, the time until it began',
    buckets: LASTING_BOUNDS,
  });
  const reads = new Counter({
    name: 'fleetbook_reads_total',
    help: 'Answers by tier',
    labelNames: ['tier'],
    registers,
  });
  readFrom(reads, () => [...tiers].map(([tier, value]) => ({ labels: { tier }, value })));
  const damaged = new Counter({
    name: 'fleetbook_cache_unusable_documents_total',
    help: 'Values of the cache that a reader could not use, by kind of document; each is replaced',
    labelNames: ['kind'],
    registers,
  });
  readFrom(damaged, () =>
    [...new Set([...DOCUMENT_KINDS, ...unusable.keys()])].map((kind) => ({
      labels: { kind },
      value: unusable.get(kind) ?? 0,
    })),
  );
}

/** An alert on the increase needs the series before the first unusable value. */
const DOCUMENT_KINDS = ['clusters', 'columns', 'price-book', 'providers', 'region', 'token'];

/** Adds a histogram with the buckets of each route. */
function addDurations(
  registry: Registry,
  { routes }: RequestCounts,
  of: (route: RouteCounts) => Durations | undefined,
  described: { readonly name: string; readonly help: string; readonly buckets: number[] },
): void {
  const { name, buckets: bounds } = described;
  const histogram = new Histogram({ ...described, labelNames: ['route'], registers: [registry] });
  readFrom(histogram, () =>
    [...routes].flatMap(([route, counts]) => {
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
    }),
  );
}

interface Series {
  readonly metricName?: string;
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
}

/** Lets a metric without observations read its series. The library's observations of all routes would take milliseconds at a scrape. */
function readFrom(metric: Counter | Histogram, series: () => readonly Series[]): void {
  const described = metric.get();
  const get = async () => ({ ...(await described), values: series() });
  // The library calls the second name when it writes the text of a histogram.
  Object.assign(metric, { get, getForPromString: get });
}
