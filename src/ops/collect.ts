/** The metrics of several processes on one page. */
import { AggregatorRegistry, type Registry } from 'prom-client';

export const exportMetrics = (registry: Registry): Promise<unknown> => registry.getMetricsAsJSON();

interface Exported {
  readonly name: string;
  readonly values: readonly { readonly value: number }[];
}

export const joinMetrics = (exported: readonly unknown[]): Promise<unknown> =>
  aggregated(exported).getMetricsAsJSON();

/** Returns the exports as Prometheus text. Equal series are added up, unless the metric has another aggregator. */
export const mergeMetrics = (exported: readonly unknown[]): Promise<string> => aggregated(exported).metrics();

function aggregated(exported: readonly unknown[]): Registry {
  const sound = exported
    .filter(Array.isArray)
    .map((metrics: unknown[]) => metrics.filter(isExported).map(finite));
  return AggregatorRegistry.aggregate(sound);
}

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
