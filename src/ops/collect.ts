/** The metrics of several processes on one page. */
import { AggregatorRegistry, type Registry } from 'prom-client';

/** A process's metrics, as they go to the one that shows them. */
export async function exportMetrics(registry: Registry): Promise<unknown> {
  return registry.getMetricsAsJSON();
}

interface Exported {
  readonly name: string;
  readonly values: readonly { readonly value: number }[];
}

/** What several processes exported, as if one had: for a process that stands between them and who asks. */
export async function joinMetrics(exported: readonly unknown[]): Promise<unknown> {
  return aggregated(exported).getMetricsAsJSON();
}

/**
 * Prometheus' text of what several processes exported. Series of the same name and labels become one, added up
 * unless the metric says otherwise; what is no export, since a process did not answer, is left out.
 */
export async function mergeMetrics(exported: readonly unknown[]): Promise<string> {
  return aggregated(exported).metrics();
}

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

/** NaN, which a histogram without any observation may hold, arrives as null from another process. */
function finite(metric: Exported): Exported {
  return {
    ...metric,
    values: metric.values.filter(({ value }) => typeof value === 'number' && !Number.isNaN(value)),
  };
}
