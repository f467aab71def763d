/** All held batches: first those that wait for a decision, then the decided ones. */
import type { BatchRecord } from '../../../../../src/features/console/routes/answers.ts';
import { useData } from '../../lib/data.ts';
import { counted } from '../../lib/format.ts';
import { Ago, Badge, Progress, Title, type Tone } from '../../parts/basics.tsx';
import { Table } from '../../parts/table.tsx';

const STATUS: Readonly<Record<BatchRecord['status'], Tone>> = {
  pending: 'warn',
  approved: 'good',
  rejected: 'note',
  undone: 'note',
  superseded: 'note',
};

export function StatusBadge({ status }: Pick<BatchRecord, 'status'>) {
  return <Badge tone={STATUS[status]}>{status === 'pending' ? 'waits' : status}</Badge>;
}

export function HeldView() {
  const answer = useData<readonly BatchRecord[]>('/api/held');
  const { data } = answer;
  const waiting = data?.filter(({ status }) => status === 'pending') ?? [];
  const decided = data?.filter(({ status }) => status !== 'pending') ?? [];
  return (
    <>
      <Title text="Held batches">
        {data && <p class="summary">{counted(waiting.length, 'batch')} to decide about</p>}
      </Title>
      <Progress {...answer} />
      {data && (
        <section aria-labelledby="waiting">
          <h2 id="waiting">Waiting for a decision</h2>
          {waiting.length === 0 ? (
            <p class="calm">No batch waits. A batch that a guard holds is shown here and on the overview.</p>
          ) : (
            <Batches batches={waiting} />
          )}
        </section>
      )}
      {decided.length > 0 && (
        <section aria-labelledby="decided">
          <h2 id="decided">Decided</h2>
          <Batches batches={decided} />
        </section>
      )}
    </>
  );
}

function Batches({ batches }: { batches: readonly BatchRecord[] }) {
  return (
    <Table
      rows={batches}
      id={({ id }) => id}
      columns={[
        ['Batch', ({ id }) => <a href={`/held/${id}`}>Batch {id}</a>],
        ['Source', ({ sourceId }) => <a href={`/sources/${encodeURIComponent(sourceId)}`}>{sourceId}</a>],
        ['State', ({ status }) => <StatusBadge status={status} />],
        ['Held', ({ heldSince }) => <Ago at={heldSince} />],
        [
          'Change',
          ({ id, pattern, broken }) => (
            <>
              <a href={`/held/${id}`}>{pattern}</a>
              <div class="muted">{broken.map(({ detail }) => detail).join('; ')}</div>
            </>
          ),
        ],
        ['Decision', (batch) => <Decision batch={batch} />],
      ]}
    />
  );
}

/** Shows who decided a batch, when and why, and who undid the decision. */
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
          undone by {undoneBy}, <Ago at={undoneAt} />
          {undoneReason !== null && <span class="muted">: “{undoneReason}”</span>}
        </div>
      )}
      {decidedAt === null && undoneAt === null && <span class="muted">none yet</span>}
    </>
  );
}
