/** Every batch that was held: those that wait first, then what was decided. */
import type { BatchRecord } from '../../../../src/features/console/routes/api.ts';
import { useData } from '../lib/data.ts';
import { counted } from '../lib/format.ts';
import { Ago, Badge, Title, type Tone, Trouble } from '../parts/basics.tsx';

const STATUS: Readonly<Record<BatchRecord['status'], Tone>> = {
  pending: 'warn',
  approved: 'good',
  rejected: 'note',
  undone: 'note',
  superseded: 'note',
};

/** `waits` for one that is pending: the words of a person. */
export function StatusBadge({ status }: Pick<BatchRecord, 'status'>) {
  return <Badge tone={STATUS[status]}>{status === 'pending' ? 'waits' : status}</Badge>;
}

export function HeldView() {
  const { data, error } = useData<readonly BatchRecord[]>('/api/held');
  const waiting = data?.filter(({ status }) => status === 'pending') ?? [];
  const decided = data?.filter(({ status }) => status !== 'pending') ?? [];
  return (
    <>
      <Title text="Held batches">
        {data && <p class="summary">{counted(waiting.length, 'batch')} to decide about</p>}
      </Title>
      <Trouble text={error} />
      {data && (
        <>
          <section aria-labelledby="waiting">
            <h2 id="waiting">Waiting for a decision</h2>
            {waiting.length === 0 ? (
              <p class="calm">No batch waits. What a guard holds is shown here, and first on the overview.</p>
            ) : (
              <Batches batches={waiting} />
            )}
          </section>
          {decided.length > 0 && (
            <section aria-labelledby="decided">
              <h2 id="decided">Decided</h2>
              <Batches batches={decided} />
            </section>
          )}
        </>
      )}
      {!data && !error && <p class="loading">Asking the database …</p>}
    </>
  );
}

function Batches({ batches }: { batches: readonly BatchRecord[] }) {
  return (
    <table class="cards">
      <thead>
        <tr>
          <th scope="col">Batch</th>
          <th scope="col">Source</th>
          <th scope="col">State</th>
          <th scope="col">Held</th>
          <th scope="col">Why it was held</th>
          <th scope="col">Decision</th>
        </tr>
      </thead>
      <tbody>
        {batches.map((batch) => (
          <tr key={batch.id}>
            <th scope="row" data-label="Batch">
              <a href={`/held/${batch.id}`}>Batch {batch.id}</a>
            </th>
            <td data-label="Source">
              <a href={`/sources/${encodeURIComponent(batch.sourceId)}`}>{batch.sourceId}</a>
            </td>
            <td data-label="State">
              <StatusBadge status={batch.status} />
            </td>
            <td data-label="Held">
              <Ago at={batch.heldSince} />
            </td>
            <td data-label="Why">{batch.broken.map(({ detail }) => detail).join('; ')}</td>
            <td data-label="Decision">
              <Decision batch={batch} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** Who decided when and why, and who took that back. */
export function Decision({ batch }: { batch: BatchRecord }) {
  const { decidedAt, decidedBy, reason, undoneAt, undoneBy, undoneReason } = batch;
  return (
    <>
      {decidedAt !== null && (
        <div>
          {decidedBy ?? 'replaced by a newer read'}, <Ago at={decidedAt} />
          {reason !== null && <span class="muted">: “{reason}”</span>}
        </div>
      )}
      {undoneAt !== null && (
        <div>
          taken back by {undoneBy}, <Ago at={undoneAt} />
          {undoneReason !== null && <span class="muted">: “{undoneReason}”</span>}
        </div>
      )}
      {decidedAt === null && undoneAt === null && <span class="muted">none yet</span>}
    </>
  );
}
