import type { RunRequests } from '../../../../../src/domain/run.ts';
import { bytesInWords, msInWords } from '../../../../../src/domain/text/quantities.ts';
import { count, counted } from '../../lib/format.ts';
import { Table } from '../../parts/table.tsx';

/** Lists the HTTP requests of a run. */
export function Requests({ total, attempts, failed, bytes, ms, kept }: RunRequests) {
  return (
    <section aria-labelledby="requests">
      <h2 id="requests">{counted(total, 'request')} to the upstream</h2>
      <p class="muted">
        {bytesInWords(bytes)} decompressed, {msInWords(ms)} together, {count(attempts - total)} repeated,{' '}
        {count(failed)} failed
      </p>
      <Table
        rows={kept}
        id={({ n }) => n}
        columns={[
          [
            'Address',
            ({ n, address, error }) => (
              <div>
                <span class="muted">{n}</span> {address}
                {error !== null && <p class="muted small">{error}</p>}
              </div>
            ),
          ],
          ['Status', ({ status }) => status ?? '–', 'number'],
          ['Size', (request) => bytesInWords(request.bytes), 'number'],
          ['Duration', (request) => msInWords(request.ms), 'number'],
          ['Attempts', (request) => count(request.attempts), 'number'],
        ]}
      />
      {kept.length < total && (
        <p class="muted">
          The totals include {count(total - kept.length)} requests that are not listed. Only the first, the
          failed and the slowest requests are stored.
        </p>
      )}
    </section>
  );
}
