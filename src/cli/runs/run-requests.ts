import type { RunRequests } from '../../domain/run.ts';
import { bytesInWords, msInWords } from '../../lib/quantities.ts';
import { alignedTable, count, moreLine, wrapped } from '../terminal/table.ts';

const HEAD = ['REQUEST', 'STATUS', 'SIZE', 'DURATION', 'ATTEMPTS', 'ADDRESS'] as const;

/**
 * The HTTP requests of a run: their sums, the requests that are kept, and why some failed.
 * @param limit rows; undefined for all that are kept
 */
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
  const head = `${count(total, 'request')}: ${bytesInWords(bytes)} decompressed, ${msInWords(ms)} together, ${attempts - total} repeated, ${failed} failed`;
  const errors = shown.flatMap(({ n, error }) => (error === null ? [] : [wrapped(`${n}: ${error}`, width)]));
  const uncounted =
    kept.length < total
      ? wrapped(
          `  ${total - kept.length} are counted and not kept: neither first, nor slow, nor failed`,
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
