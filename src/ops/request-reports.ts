/** What a reader says of its requests, made of the plain counts that it keeps anyway. */
import { randomBytes } from 'node:crypto';
import { REPORT_EVERY_MS, type ReaderReport, STATUS_CLASSES } from '../domain/report.ts';
import { BOUNDS, type RequestCounts } from './request-counts.ts';

type Counted = Pick<ReaderReport, 'statuses' | 'durations' | 'tiers'>;

/** Everything since the process began. */
function counted({ routes, tiers }: RequestCounts): Counted {
  const statuses = STATUS_CLASSES.map(() => 0);
  const durations = Array.from({ length: BOUNDS.length + 1 }, () => 0);
  for (const route of routes.values()) {
    for (const [i, count] of route.durations.buckets.entries()) durations[i] = (durations[i] ?? 0) + count;
    for (const byStatus of route.counts.values())
      for (const [status, count] of byStatus.entries()) {
        const index = Math.min(Math.max(Math.floor(status / 100) - 2, 0), statuses.length - 1);
        if (count > 0) statuses[index] = (statuses[index] ?? 0) + count;
      }
  }
  return { statuses, durations, tiers: Object.fromEntries(tiers) };
}

function since(before: Counted, { statuses, durations, tiers }: Counted): Counted {
  return {
    statuses: statuses.map((count, i) => count - (before.statuses[i] ?? 0)),
    durations: durations.map((count, i) => count - (before.durations[i] ?? 0)),
    tiers: Object.fromEntries(
      Object.entries(tiers).map(([tier, count]) => [tier, count - (before.tiers[tier] ?? 0)]),
    ),
  };
}

/**
 * Sends a report of the requests now and then, and a last one at the end. One that did not arrive is part of the next.
 * Nothing of this happens while a request is answered.
 * @param send true when the report has arrived for sure; false where the cache is away
 */
export function reportRequests(
  counts: RequestCounts,
  send: (report: string) => Promise<boolean>,
  { everyMs = REPORT_EVERY_MS, now = () => performance.now() } = {},
): AsyncDisposable {
  const process = randomBytes(6).toString('hex');
  let number = 0;
  let from = now();
  let before = counted(counts);
  let sending: Promise<void> | undefined;
  const report = async () => {
    const to = now();
    const all = counted(counts);
    const seconds = Math.round(to - from) / 1000;
    const told: ReaderReport = { kind: 'reader', process, number, seconds, ...since(before, all) };
    if (!(await send(JSON.stringify(told)))) return;
    number += 1;
    from = to;
    before = all;
  };
  const tell = () => {
    sending ??= report()
      .catch(() => {})
      .finally(() => {
        sending = undefined;
      });
    return sending;
  };
  const timer = setInterval(() => void tell(), everyMs);
  timer.unref();
  return {
    async [Symbol.asyncDispose]() {
      clearInterval(timer);
      await sending;
      await tell();
    },
  };
}
