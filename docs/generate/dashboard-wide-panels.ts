/** What the dashboard shows of answers that are wider than one list: searches, the changes feed, files of the catalogue. */
import { of, quantile, rate, type Shown, V1 } from './dashboard-queries.ts';

export const WIDE_ROW: { readonly title: string; readonly panels: readonly Shown[] } = {
  title: 'Searches, changes and files',
  panels: [
    {
      title: 'Index of searches',
      says: 'Bytes that it takes of a reader, against what MEMORY_LIMIT leaves for it; none until somebody searches',
      unit: 'bytes',
      queries: [
        { expr: `max(${of('fleetbook_search_index_bytes')})`, legend: 'taken' },
        { expr: `min(${of('fleetbook_search_index_limit_bytes')})`, legend: 'limit' },
      ],
    },
    {
      title: 'Machines that could not be read for searches',
      says: 'Times, by reason; too-large asks for a person',
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
      says: 'Open ones and requests that wait, and those that ended early each second',
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
      title: 'Time of downloads and of waiting requests',
      says: '99 of 100 took less; other panels of the time of an answer leave them out',
      unit: 's',
      queries: [
        {
          expr: quantile(0.99, 'fleetbook_http_lasting_request_duration_seconds', 'route', V1),
          legend: '{{route}}',
        },
      ],
    },
    {
      title: 'Files behind the catalogue',
      says: 'Seconds since the catalogue has changed and no files of it were made',
      unit: 's',
      queries: [{ expr: `min(${of('fleetbook_exports_behind_seconds')})`, legend: 'behind' }],
    },
  ],
};
