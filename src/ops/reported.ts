/** What processes have reported lately: read once for all pages, and kept, so that only what is new is asked for. */
import type { ReadReports } from '../db/reports.ts';
import { parseReport, type Report } from '../domain/report.ts';

export type DatedReport = Report & {
  /** When it was sent, milliseconds since 1970 by the clock of Redis. */
  readonly at: number;
};

export interface Reported {
  /** Milliseconds since 1970, by the same clock. */
  readonly now: number;
  /** Oldest first; of each number of a process one. */
  readonly reports: readonly DatedReport[];
}

/** Reads what came after an id, or of the last milliseconds. `key` says which stream it is: another one begins anew. */
export type ReadAfter = (after: {
  readonly after: string | undefined;
  readonly ms: number;
}) => Promise<ReadReports & { readonly key: string }>;

/** Milliseconds of reports that are kept. */
export const KEPT_MS = 3 * 3600_000 + 60_000;

/** @throws what `read` fails with */
export function reportedLately(read: ReadAfter): () => Promise<Reported> {
  let known = new Map<string, DatedReport>();
  let last: { readonly id: string; readonly key: string } | undefined;
  return async () => {
    let found = await read({ after: last?.id, ms: KEPT_MS });
    if (last !== undefined && last.key !== found.key) {
      known = new Map();
      found = await read({ after: undefined, ms: KEPT_MS });
    }
    for (const { id, text } of found.reports) {
      const report = parseReport(text);
      if (!report) continue;
      const name = `${report.process} ${report.number}`;
      // The order of a map is that of insertion: the last one of a number is also the latest.
      known.delete(name);
      known.set(name, { ...report, at: Number(id.split('-')[0]) });
    }
    const newest = found.reports.at(-1);
    last = newest ? { id: newest.id, key: found.key } : last;
    for (const [name, { at }] of known) {
      if (at > found.now - KEPT_MS) break;
      known.delete(name);
    }
    return { now: found.now, reports: [...known.values()] };
  };
}
