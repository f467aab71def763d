import type { RunRequests } from '../../domain/run.ts';
import { bytesInWords, msInWords } from '../../domain/text/quantities.ts';
import { alignedTable, count, moreLine, wrapped } from '../terminal/output.ts';

const HEAD = ['REQUEST', 'STATUS', 'SIZE', 'DURATION', 'ATTEMPTS', 'ADDRESS'] as const;

/** Returns the HTTP requests of a run: sums, stored requests and errors. @param limit rows; undefined for all */
export function requestsText(requests: RunRequests, limit: number | undefined, width: number): string {
  const { total, attempts, failed, bytes, ms, kept } = requests;
  const shown = kept.slice(0, limit);
  const rows = shown.map((request) => [
    String(request.n),
    request.status === null ? '-' : String(request.status),
    bytesInWords(request.bytes),
    msInWords(request.ms),
    String(request.attempts),
    request.address,
  ]);
  const head = `${count(total, 'request')}: ${bytesInWords(bytes)} decompressed, ${msInWords(ms)} in total, ${attempts - total} retries, ${failed} failed`;
  const errors = shown.flatMap(({ n, error }) => (error === null ? [] : [wrapped(`${n}: ${error}`, width)]));
  const uncounted =
    kept.length < total
      ? wrapped(
          `  ${total - kept.length} more are not stored: only the first, slow and failed requests are`,
          width,
        )
      : '';
  return [
    wrapped(head, width),
    alignedTable(HEAD, rows),
    moreLine(shown.length, kept.length, 'requests'),
    uncounted,
    ...errors,
  ].join('');
}
