import { expect, it, vi } from 'vitest';
import { parseReport, type ReaderReport } from '../../src/domain/report.ts';
import { RequestCounts } from '../../src/ops/request-counts.ts';
import { reportRequests } from '../../src/ops/request-reports.ts';

const answer = (counts: RequestCounts, status: number, tier?: string) =>
  counts.add({ route: '/v1/machines', method: 'GET', status, seconds: 0.0003, tier });

it('tells what was answered since the last report that has arrived, each under a number of its own', async () => {
  vi.useFakeTimers();
  const counts = new RequestCounts();
  const sent: ReaderReport[] = [];
  let arrives = true;
  const reports = reportRequests(counts, async (text) => {
    const report = parseReport(text);
    if (report?.kind === 'reader') sent.push(report);
    return arrives;
  });
  const short = () =>
    sent.map(({ number, seconds, statuses, tiers, durations }) => [
      number,
      Math.round(seconds),
      statuses.join(' '),
      tiers,
      durations[2],
    ]);
  answer(counts, 200, 'memory');
  answer(counts, 304, 'memory');
  answer(counts, 404);
  await vi.advanceTimersByTimeAsync(10_000);
  arrives = false;
  answer(counts, 503);
  await vi.advanceTimersByTimeAsync(10_000);
  arrives = true;
  answer(counts, 200, 'redis');
  await vi.advanceTimersByTimeAsync(10_000);
  expect(short()).toEqual([
    [0, 10, '1 1 1 0', { memory: 2 }, 3],
    // It may have arrived or not: the next one has its number, and all of it.
    [1, 10, '0 0 0 1', { memory: 0 }, 1],
    [1, 20, '1 0 0 1', { memory: 0, redis: 1 }, 2],
  ]);
  // What nobody has heard of yet goes out at the end.
  answer(counts, 200, 'redis');
  await reports[Symbol.asyncDispose]();
  vi.useRealTimers();
  expect(sent.at(-1)).toMatchObject({ number: 2, statuses: [1, 0, 0, 0], tiers: { memory: 0, redis: 1 } });
  expect(new Set(sent.map(({ process }) => process)).size).toBe(1);
});

it.each([
  'no JSON',
  '{}',
  '{"kind":"reader","process":"a","number":0,"seconds":10}',
  '{"kind":"reader","process":"a","number":0,"seconds":10,"statuses":["1"],"durations":[],"tiers":{}}',
  '{"kind":"worker","process":"a","number":0,"seconds":10,"lagSeconds":"much","dirty":null,"waiting":null}',
  '{"kind":"other","process":"a","number":0,"seconds":10}',
])('takes %s for no report', (text) => {
  expect(parseReport(text)).toBeUndefined();
});
