/** Panels about searches, the changes feed and files of the catalogue. */
import { of, quantile, rate, type Shown, V1 } from './dashboard-queries.ts';

export const WIDE_ROW: { readonly title: string; readonly panels: readonly Shown[] } = {
  title: 'Searches, changes and files',
  panels: [
    {
      title: 'Index of searches',
      says: 'Bytes in a reader, and its share of MEMORY_LIMIT; none before the first search',
      unit: 'bytes',
      queries: [
        { expr: `max(${of('fleetbook_search_index_bytes')})`, legend: 'taken' },
        { expr: `min(${of('fleetbook_search_index_limit_bytes')})`, legend: 'limit' },
      ],
    },
    {
      title: 'Failed reads for searches',
      says: 'By reason; too-large needs an operator',
      unit: 'short',
      queries: [
        {
          expr: `sum by (reason) (${rate('fleetbook_search_failures_total')})`,
          legend: '{{reason}}',
        },
      ],
    },
    {
      title: 'Streams of changes',
      says: 'Open streams, and streams that ended early each second',
      unit: 'short',
      queries: [
        { expr: `sum(${of('fleetbook_streams')})`, legend: 'open' },
        {
          expr: `sum by (reason) (${rate('fleetbook_streams_ended_total')})`,
          legend: '{{reason}}',
        },
      ],
    },
    {
      title: 'Duration of streams and downloads',
      says: '99 of 100 took less; other latency panels leave these out',
      unit: 's',
      queries: [
        {
          expr: quantile(0.99, 'fleetbook_http_lasting_request_duration_seconds', 'route', V1),
          legend: '{{route}}',
        },
      ],
    },
    {
      title: 'Age of outdated files',
      says: 'Seconds since the catalogue changed without new files',
      unit: 's',
      queries: [{ expr: `min(${of('fleetbook_exports_behind_seconds')})`, legend: 'behind' }],
    },
  ],
};
