/** How a panel is described, and what its queries are made of. */

/** The metrics' unit as Grafana calls it. */
type Unit = 'short' | 's' | 'reqps' | 'bytes' | 'percentunit' | 'ops';

interface Query {
  /** May hold `$job`, the installation that is looked at. */
  readonly expr: string;
  /** How the series are named; none for a single one. */
  readonly legend?: string;
}

/** A panel: a chart, or a number. */
export interface Shown {
  readonly title: string;
  /** What a good value is, in a sentence. */
  readonly says: string;
  readonly unit: Unit;
  readonly queries: readonly Query[];
  /** Values from here on are shown in red. */
  readonly badFrom?: number;
  /** A number alone and not a chart. */
  readonly isNumber?: true;
  readonly isStacked?: true;
}

const JOB = 'job="$job"';
/** Grafana's own: at least four scrapes. */
export const INTERVAL = '[$__rate_interval]';
export const of = (name: string, labels = '') => `${name}{${[JOB, labels].filter(Boolean).join(',')}}`;
export const perSource = (aggregate: 'min' | 'max', name: string) => `${aggregate} by (source) (${of(name)})`;
export const ratio = `${perSource('min', 'fleetbook_source_age_seconds')} / on (source) ${perSource('max', 'fleetbook_source_freshness_objective_seconds')}`;
export const rate = (name: string, labels = '') => `rate(${of(name, labels)}${INTERVAL})`;
export const quantile = (share: number, name: string, by: string, labels = '') =>
  `histogram_quantile(${share}, sum by (${[by, 'le'].filter(Boolean).join(', ')}) (${rate(`${name}_bucket`, labels)}))`;
export const V1 = 'route=~"/v1/.*"';
