/** Sends the metrics of a process that answered once to its parent, and ends. */
import { exportMetrics } from '../../../src/ops/merge-metrics.ts';
import { apiMetrics } from '../../../src/ops/metrics.ts';

const { registry, observe } = apiMetrics();
observe({ route: '/v1/clusters', method: 'GET', status: 200, seconds: 0.001, tier: 'redis' });
process.send?.(await exportMetrics(registry), () => process.exit());
