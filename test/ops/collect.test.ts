import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { expect, it } from 'vitest';
import {
  exportMetrics,
  mergeMetrics,
  type ProcessExport,
  ProcessExports,
} from '../../src/ops/merge-metrics.ts';

/** A process with these counts of requests and connections. */
async function exported(pid: number, requests: number, connections: number): Promise<ProcessExport> {
  const registers = [new Registry()];
  new Counter({ name: 'requests_total', help: '-', registers }).inc(requests);
  new Gauge({ name: 'connections', help: '-', registers }).set(connections);
  new Histogram({ name: 'seconds', help: '-', buckets: [1], registers }).observe(requests);
  // Converts it as for another process.
  return { pid, metrics: JSON.parse(JSON.stringify(await exportMetrics(registers[0] ?? new Registry()))) };
}

const lines = async (exports: readonly unknown[]) =>
  (await mergeMetrics(exports))
    .split('\n')
    .filter((line) => /^(requests_total|connections|seconds_sum) /.test(line));

it('adds up the counters and gauges of several processes', async () => {
  const all = new ProcessExports();
  const answers = [await exported(1, 5, 2), await exported(2, 7, 1), undefined, 'nonsense'];
  expect(await lines(await all.add(answers, new Set([1, 2])))).toEqual([
    'requests_total 12',
    'connections 3',
    'seconds_sum 12',
  ]);
});

it('uses the last answer of a process that does not answer', async () => {
  const all = new ProcessExports();
  await all.add([await exported(1, 5, 2), await exported(2, 7, 1)], new Set([1, 2]));
  expect(await lines(await all.add([await exported(1, 6, 2)], new Set([1, 2])))).toContain(
    'requests_total 13',
  );
});

it('keeps the counters of ended processes, and drops their gauges', async () => {
  const all = new ProcessExports();
  await all.add([await exported(1, 5, 2), await exported(2, 7, 1)], new Set([1, 2]));
  const both = [
    all.add([await exported(2, 8, 1), await exported(3, 1, 4)], new Set([2, 3])),
    all.add([await exported(3, 1, 4)], new Set([3])),
  ];
  expect(await lines(await (both[0] ?? Promise.reject()))).toEqual([
    'requests_total 14',
    'seconds_sum 14',
    'connections 5',
  ]);
  expect(await lines(await (both[1] ?? Promise.reject()))).toEqual([
    'requests_total 14',
    'seconds_sum 14',
    'connections 4',
  ]);
});
