/** The description of a panel, and the parts of its queries. */

/** Grafana's name of the unit. */
type Unit = 'short' | 's' | 'reqps' | 'bytes' | 'percentunit' | 'ops';

interface Query {
  /** May contain `$job`, the selected installation. */
  readonly expr: string;
  /** Name of each series; undefined for a single one. */
  readonly legend?: string;
}

/** A panel: a chart, or a number. */
export interface Shown {
  readonly title: string;
  /** One sentence about good values. */
  readonly says: string;
  readonly unit: Unit;
  readonly queries: readonly Query[];
  /** Values from this one on are red. */
  readonly badFrom?: number;
  /** A number in place of a chart. */
  readonly isNumber?: true;
  readonly isStacked?: true;
}

const JOB = 'job="$job"';
/** Grafana's variable: at least four scrapes. */
export const INTERVAL = '[$__rate_interval]';
export const of = (name: string, labels = '') => `${name}{${[JOB, labels].filter(Boolean).join(',')}}`;
export const perSource = (aggregate: 'min' | 'max', name: string) => `${aggregate} by (source) (${of(name)})`;
export const ratio = `${perSource('min', 'fleetbook_source_age_seconds')} / on (source) ${perSource('max', 'fleetbook_source_freshness_objective_seconds')}`;
export const rate = (name: string, labels = '') => `rate(${of(name, labels)}${INTERVAL})`;
export const quantile = (share: number, name: string, by: string, labels = '') =>
  `histogram_quantile(${share}, sum by (${[by, 'le'].filter(Boolean).join(', ')}) (${rate(`${name}_bucket`, labels)}))`;
export const V1 = 'route=~"/v1/.*"';
