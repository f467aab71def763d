/** The HTTP requests of a run. */

import type { RunRequests } from '../../../../src/domain/run.ts';
import { bytesInWords, msInWords } from '../../../../src/lib/quantities.ts';
import { count, counted } from '../lib/format.ts';

export function Requests({ total, attempts, failed, bytes, ms, kept }: RunRequests) {
  const repeated = attempts - total;
  return (
    <section aria-labelledby="requests">
      <h2 id="requests">{counted(total, 'request')} to the upstream</h2>
      <p class="muted">
        {bytesInWords(bytes)} decompressed, {msInWords(ms)} together, {count(repeated)} repeated,{' '}
        {count(failed)} failed
      </p>
      <table class="cards">
        <thead>
          <tr>
            <th scope="col">Address</th>
            <th scope="col" class="number">
              Status
            </th>
            <th scope="col" class="number">
              Size
            </th>
            <th scope="col" class="number">
              Duration
            </th>
            <th scope="col" class="number">
              Attempts
            </th>
          </tr>
        </thead>
        <tbody>
          {kept.map((request) => (
            <tr key={request.n}>
              <th scope="row" data-label="Address">
                <div>
                  <span class="muted">{request.n}</span> {request.address}
                  {request.error !== null && <p class="muted small">{request.error}</p>}
                </div>
              </th>
              <td class="number" data-label="Status">
                {request.status ?? '–'}
              </td>
              <td class="number" data-label="Size">
                {bytesInWords(request.bytes)}
              </td>
              <td class="number" data-label="Duration">
                {msInWords(request.ms)}
              </td>
              <td class="number" data-label="Attempts">
                {count(request.attempts)}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {kept.length < total && (
        <p class="muted">
          {count(total - kept.length)} more are counted above. The first are kept, and of the others the
          failed and the slowest.
        </p>
      )}
    </section>
  );
}
