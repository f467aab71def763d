/** The panels of the dashboard with their queries. */
import { INTERVAL, of, perSource, quantile, rate, ratio, type Shown, V1 } from './dashboard-queries.ts';
import { WIDE_ROW } from './dashboard-wide-panels.ts';

/** Panels from top to bottom. */
export const ROWS: readonly { readonly title: string; readonly panels: readonly Shown[] }[] = [
  {
    title: 'Problems for an operator',
    panels: [
      {
        title: 'Held batches',
        says: 'Batches that wait for an operator: `fleetbook hold list`',
        unit: 'short',
        queries: [{ expr: `sum(${perSource('max', 'fleetbook_source_held_batches')})` }],
        badFrom: 1,
        isNumber: true,
      },
      {
        title: 'Stale sources',
        says: 'Sources whose data is older than their objective',
        unit: 'short',
        queries: [{ expr: `count(${ratio} > 1) or vector(0)` }],
        badFrom: 1,
        isNumber: true,
      },
      {
        title: 'Failing sources',
        says: 'Sources whose last run failed',
        unit: 'short',
        queries: [{ expr: `count(${perSource('min', 'fleetbook_source_failed_runs')} > 0) or vector(0)` }],
        badFrom: 1,
        isNumber: true,
      },
      {
        title: 'Regions not read',
        says: 'Regions that the last good run of their source could not read',
        unit: 'short',
        queries: [{ expr: `sum(${perSource('max', 'fleetbook_source_unread_regions')})` }],
        badFrom: 1,
        isNumber: true,
      },
      {
        title: 'Documents to publish',
        says: 'Stored documents that readers cannot see yet; above 0 only for moments',
        unit: 'short',
        queries: [{ expr: `sum(max by (kind) (${of('fleetbook_publication_dirty_documents')}))` }],
        badFrom: 1000,
        isNumber: true,
      },
      {
        title: 'Errors of the API',
        says: 'Share of answers with a status of 500 or more',
        unit: 'percentunit',
        queries: [
          {
            expr: `sum(${rate('fleetbook_http_requests_total', 'status=~"5.."')}) / sum(${rate('fleetbook_http_requests_total')}) or vector(0)`,
          },
        ],
        badFrom: 0.01,
        isNumber: true,
      },
    ],
  },
  {
    title: 'Sources',
    panels: [
      {
        title: 'Age against the objective',
        says: 'Age of the data divided by maxAge: from 1 on it is stale',
        unit: 'percentunit',
        queries: [{ expr: ratio, legend: '{{source}}' }],
        badFrom: 1,
      },
      {
        title: 'Oldest regions',
        says: 'Age of the ten regions that were read longest ago',
        unit: 's',
        queries: [
          {
            expr: `topk(10, min by (source, region) (${of('fleetbook_region_age_seconds')}))`,
            legend: '{{source}} {{region}}',
          },
        ],
      },
      {
        title: 'Runs by outcome',
        says: 'Runs that ended in the interval',
        unit: 'short',
        queries: [
          {
            expr: `sum by (outcome) (increase(${of('fleetbook_sync_runs_total')}${INTERVAL}))`,
            legend: '{{outcome}}',
          },
        ],
        isStacked: true,
      },
      {
        title: 'Runs that failed in a row',
        says: '0 if the last run succeeded',
        unit: 'short',
        queries: [{ expr: perSource('min', 'fleetbook_source_failed_runs'), legend: '{{source}}' }],
        badFrom: 3,
      },
      {
        title: 'Duration of a run',
        says: 'From start to commit; 95 of 100 took less',
        unit: 's',
        queries: [
          { expr: quantile(0.95, 'fleetbook_sync_duration_seconds', 'source'), legend: '{{source}}' },
        ],
      },
      {
        title: 'Time since a batch was held',
        says: '0 if no batch waits',
        unit: 's',
        queries: [{ expr: perSource('min', 'fleetbook_source_held_seconds'), legend: '{{source}}' }],
      },
      {
        title: 'Published',
        says: 'Machines or clusters that readers see; a fall to 0 needs an operator',
        unit: 'short',
        queries: [{ expr: perSource('max', 'fleetbook_source_published'), legend: '{{source}}' }],
      },
      {
        title: 'Unusable rows',
        says: 'Quarantined rows by kind of reason; `fleetbook rejected` lists them',
        unit: 'short',
        queries: [
          {
            expr: `max by (source, reason) (${of('fleetbook_source_quarantined_by_reason')})`,
            legend: '{{source}} {{reason}}',
          },
        ],
        isStacked: true,
      },
      {
        title: 'Machines that are not published',
        says: 'Excluded machines by reason; `fleetbook excluded` lists them',
        unit: 'short',
        queries: [
          {
            expr: `max by (source, reason) (${of('fleetbook_source_excluded_by_reason')})`,
            legend: '{{source}} {{reason}}',
          },
        ],
        isStacked: true,
      },
    ],
  },
  {
    title: 'Publication',
    panels: [
      {
        title: 'Documents to publish, by kind',
        says: 'Dirty documents',
        unit: 'short',
        queries: [
          {
            expr: `max by (kind) (${of('fleetbook_publication_dirty_documents')})`,
            legend: '{{kind}}',
          },
        ],
        isStacked: true,
      },
      {
        title: 'Age of missing versions',
        says: 'Longest time for which the cache has lacked a version of PostgreSQL',
        unit: 's',
        queries: [{ expr: `max(${of('fleetbook_cache_stalest_seconds')})`, legend: 'now' }],
        badFrom: 120,
      },
      {
        title: 'Lag of publication',
        says: 'Time until the cache had a missing version',
        unit: 's',
        queries: [
          { expr: quantile(0.5, 'fleetbook_cache_lag_seconds', ''), legend: 'half of them' },
          { expr: quantile(0.99, 'fleetbook_cache_lag_seconds', ''), legend: '99 of 100' },
        ],
      },
      {
        title: 'Results of the comparison',
        says: 'ahead, different and damaged need an operator',
        unit: 'short',
        queries: [
          {
            expr: `sum by (verdict) (increase(${of('fleetbook_cache_compared_documents_total', 'verdict!~"same|moved"')}${INTERVAL}))`,
            legend: '{{verdict}}',
          },
        ],
      },
    ],
  },
  {
    title: 'Replica of PostgreSQL',
    panels: [
      {
        title: 'Lag of the replica',
        says: 'Age of its last transaction at the last read; workers commit at least once a minute',
        unit: 's',
        queries: [
          { expr: `max by (instance) (${of('fleetbook_replica_lag_seconds')})`, legend: '{{instance}}' },
        ],
      },
      {
        title: 'Reads that the primary answered',
        says: 'By reason; behind and away need an operator',
        unit: 'reqps',
        queries: [
          { expr: `sum by (reason) (${rate('fleetbook_fenced_reads_total')})`, legend: '{{reason}}' },
        ],
        isStacked: true,
      },
    ],
  },
  {
    title: 'Queues',
    panels: [
      {
        title: 'Jobs',
        says: 'By queue and state, without completed jobs',
        unit: 'short',
        queries: [
          {
            expr: `max by (queue, state) (${of('fleetbook_queue_jobs', 'state=~"waiting|active|delayed"')})`,
            legend: '{{queue}} {{state}}',
          },
        ],
        isStacked: true,
      },
      {
        title: 'Oldest job',
        says: 'Waiting or running time of the oldest job',
        unit: 's',
        queries: [
          {
            expr: `max by (queue, state) (${of('fleetbook_queue_oldest_job_seconds')})`,
            legend: '{{queue}} {{state}}',
          },
        ],
      },
    ],
  },
  {
    title: 'API',
    panels: [
      {
        title: 'Requests',
        says: 'Answers a second, by status',
        unit: 'reqps',
        queries: [
          {
            expr: `sum by (status) (${rate('fleetbook_http_requests_total')})`,
            legend: '{{status}}',
          },
        ],
        isStacked: true,
      },
      {
        title: 'Latency',
        says: 'Paths below /v1',
        unit: 's',
        queries: [0.5, 0.9, 0.99].map((share) => ({
          expr: quantile(share, 'fleetbook_http_request_duration_seconds', '', V1),
          legend: `${share * 100} of 100`,
        })),
      },
      {
        title: 'Latency by route',
        says: '99 of 100 took less',
        unit: 's',
        queries: [
          {
            expr: quantile(0.99, 'fleetbook_http_request_duration_seconds', 'route', V1),
            legend: '{{route}}',
          },
        ],
      },
      {
        title: 'Answers by tier',
        says: 'Share of memory, Redis and PostgreSQL; memory should give nearly all',
        unit: 'percentunit',
        queries: [
          {
            expr: `sum by (tier) (${rate('fleetbook_reads_total')}) / on () group_left sum(${rate('fleetbook_reads_total')})`,
            legend: '{{tier}}',
          },
        ],
        isStacked: true,
      },
    ],
  },
  WIDE_ROW,
  {
    title: 'Processes',
    panels: [
      {
        title: 'Memory',
        says: 'Resident memory by kind of process',
        unit: 'bytes',
        queries: [
          { expr: `sum by (process) (${of('process_resident_memory_bytes')})`, legend: '{{process}}' },
        ],
      },
      {
        title: 'CPU',
        says: 'Busy cores',
        unit: 'short',
        queries: [{ expr: `sum by (process) (${rate('process_cpu_seconds_total')})`, legend: '{{process}}' }],
      },
      {
        title: 'Delay of the event loop',
        says: '99 of 100 turns had less delay',
        unit: 's',
        queries: [
          { expr: `max by (process) (${of('nodejs_eventloop_lag_p99_seconds')})`, legend: '{{process}}' },
        ],
      },
      {
        title: 'Processes that serve',
        says: 'Only if PROCESSES is above 1',
        unit: 'short',
        queries: [
          { expr: `sum(${of('fleetbook_serve_processes')})`, legend: 'wanted' },
          { expr: `sum(${of('fleetbook_serve_processes_ready')})`, legend: 'ready' },
        ],
      },
    ],
  },
];
