/**
 * Counts what a reader does in plain numbers. The lookup of a labelled series costs more than the answer from memory, so request-series.ts
 * makes series of the numbers at a scrape.
 */

import type { RequestOutcome } from '../domain/request-outcome.ts';

const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', '(none)']);

export const BOUNDS = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
];

export const LASTING_BOUNDS = [1, 5, 15, 30, 60, 300, 900];

const STATUSES = 600;

export class Durations {
  /** Counts by the index of the first bound that a duration does not exceed. The last count is for longer ones. */
  readonly buckets: Float64Array;
  seconds = 0;
  readonly #bounds: readonly number[];

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.buckets = new Float64Array(bounds.length + 1);
  }

  add(seconds: number): void {
    let bound = 0;
    while (seconds > (this.#bounds[bound] ?? Number.POSITIVE_INFINITY)) bound += 1;
    this.buckets[bound] = (this.buckets[bound] ?? 0) + 1;
    this.seconds += seconds;
  }
}

export class RouteCounts {
  readonly counts = new Map<string, Float64Array>();
  readonly durations = new Durations(BOUNDS);
  /** Of streams and downloads; undefined while there were none. */
  lasting: Durations | undefined;

  add(method: string, status: number, seconds: number, lasts = false): void {
    const byStatus = this.counts.get(method) ?? this.#countsOf(METHODS.has(method) ? method : 'other');
    byStatus[status] = (byStatus[status] ?? 0) + 1;
    if (lasts) this.lasting ??= new Durations(LASTING_BOUNDS);
    (lasts && this.lasting ? this.lasting : this.durations).add(seconds);
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

export class RequestCounts {
  readonly routes = new Map<string, RouteCounts>();
  readonly tiers = new Map<string, number>();
  /** Unusable values of the cache by kind of document. */
  readonly unusable = new Map<string, number>();

  readonly add = ({ route, method, status, seconds, tier, lasts }: RequestOutcome): void => {
    let counts = this.routes.get(route);
    if (!counts) {
      counts = new RouteCounts();
      this.routes.set(route, counts);
    }
    counts.add(method, status, seconds, lasts);
    if (tier !== undefined) this.tiers.set(tier, (this.tiers.get(tier) ?? 0) + 1);
  };

  readonly addUnusable = (kind: string): void => {
    this.unusable.set(kind, (this.unusable.get(kind) ?? 0) + 1);
  };
}
