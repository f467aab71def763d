/** What the dashboard shows, and by which queries. */
import { INTERVAL, of, perSource, quantile, rate, ratio, type Shown, V1 } from './dashboard-queries.ts';
import { WIDE_ROW } from './dashboard-wide-panels.ts';

/** The panels, from the top to the bottom. */
export const ROWS: readonly { readonly title: string; readonly panels: readonly Shown[] }[] = [
  {
    title: 'What needs a person',
    panels: [
      {
        title: 'Held batches',
        says: 'Batches that a guard stopped: somebody decides about each. `fleetbook hold list`',
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
        title: 'Documents to be published',
        says: 'What is stored and readers cannot see yet; more than nothing for moments only',
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
        says: 'Age of the data divided by maxAge: 1 and more is stale',
        unit: 'percentunit',
        queries: [{ expr: ratio, legend: '{{source}}' }],
        badFrom: 1,
      },
      {
        title: 'Oldest regions',
        says: 'Since when the ten oldest regions were not read',
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
        says: '0 where the last run did well',
        unit: 'short',
        queries: [{ expr: perSource('min', 'fleetbook_source_failed_runs'), legend: '{{source}}' }],
        badFrom: 3,
      },
      {
        title: 'Time of a run',
        says: 'From its start to its commit, 95 of 100 took less',
        unit: 's',
        queries: [
          { expr: quantile(0.95, 'fleetbook_sync_duration_seconds', 'source'), legend: '{{source}}' },
        ],
      },
      {
        title: 'Time for which a batch is held',
        says: '0 where none waits for a decision',
        unit: 's',
        queries: [{ expr: perSource('min', 'fleetbook_source_held_seconds'), legend: '{{source}}' }],
      },
      {
        title: 'Published',
        says: 'Machines or clusters that readers see; one that falls to nothing is no good news',
        unit: 'short',
        queries: [{ expr: perSource('max', 'fleetbook_source_published'), legend: '{{source}}' }],
      },
      {
        title: 'Rows that could not be used',
        says: 'Quarantined, by the kind of reason. `fleetbook rejected` lists them',
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
        says: 'Excluded, by reason. `fleetbook excluded` lists them',
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
        title: 'Documents to be published, by kind',
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
        title: 'What the cache lacks',
        says: 'For how long the cache has lacked a version that PostgreSQL has, the longest',
        unit: 's',
        queries: [{ expr: `max(${of('fleetbook_cache_stalest_seconds')})`, legend: 'now' }],
        badFrom: 120,
      },
      {
        title: 'Lag of publication',
        says: 'For how long documents were seen to lack a version before they caught up',
        unit: 's',
        queries: [
          { expr: quantile(0.5, 'fleetbook_cache_lag_seconds', ''), legend: 'half of them' },
          { expr: quantile(0.99, 'fleetbook_cache_lag_seconds', ''), legend: '99 of 100' },
        ],
      },
      {
        title: 'What the comparison found',
        says: 'ahead, different and damaged ask for a person',
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
        says: 'Age of the last transaction that it had when it was read; workers commit at least once a minute',
        unit: 's',
        queries: [
          { expr: `max by (instance) (${of('fleetbook_replica_lag_seconds')})`, legend: '{{instance}}' },
        ],
      },
      {
        title: 'Reads that the primary answered for it',
        says: 'By reason: an operator has to act on behind and away',
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
        says: 'By queue and state, but for those that are done',
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
        says: 'For how long the oldest job has waited, or has run',
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
        title: 'Time of an answer',
        says: 'Of the paths below /v1',
        unit: 's',
        queries: [0.5, 0.9, 0.99].map((share) => ({
          expr: quantile(share, 'fleetbook_http_request_duration_seconds', '', V1),
          legend: `${share * 100} of 100`,
        })),
      },
      {
        title: 'Time of an answer by route',
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
        says: 'Share that memory, Redis and PostgreSQL gave: nearly all are to be of memory',
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
        says: 'Resident, of each kind of process',
        unit: 'bytes',
        queries: [
          { expr: `sum by (process) (${of('process_resident_memory_bytes')})`, legend: '{{process}}' },
        ],
      },
      {
        title: 'Processor',
        says: 'Cores that are busy',
        unit: 'short',
        queries: [{ expr: `sum by (process) (${rate('process_cpu_seconds_total')})`, legend: '{{process}}' }],
      },
      {
        title: 'Lateness of the event loop',
        says: '99 of 100 turns were less late',
        unit: 's',
        queries: [
          { expr: `max by (process) (${of('nodejs_eventloop_lag_p99_seconds')})`, legend: '{{process}}' },
        ],
      },
      {
        title: 'Processes that serve',
        says: 'Where PROCESSES is more than 1',
        unit: 'short',
        queries: [
          { expr: `sum(${of('fleetbook_serve_processes')})`, legend: 'wanted' },
          { expr: `sum(${of('fleetbook_serve_processes_ready')})`, legend: 'ready' },
        ],
      },
    ],
  },
];
