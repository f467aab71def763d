/** The history of a held batch: its runs, the batch that replaced it, and the changes of its approval. */
import type { RunAnswer, ShownBatch } from '../../../../../src/features/console/routes/answers.ts';
import { useData } from '../../lib/data.ts';
import type { Place } from '../../lib/router.ts';
import { Progress } from '../../parts/basics.tsx';
import { ChangeList, changesQuery } from '../../parts/change-list.tsx';
import { Table } from '../../parts/table.tsx';

/** Links to the runs of a batch. */
export function Runs({ trail: { heldBy, storedBy, undoneBy } }: Pick<ShownBatch, 'trail'>) {
  const runs = [
    ['read by', heldBy],
    ['stored by', storedBy],
    ['undone by', undoneBy],
  ] as const;
  return (
    <>
      {runs
        .filter(([, id]) => id !== null)
        .map(([what, id], i) => (
          <span key={what}>
            {i > 0 && ', '}
            {what} <a href={`/runs/${id}`}>run {id}</a>
          </span>
        ))}
    </>
  );
}

/** Links from a superseded batch to its successor. */
export function Replaced({ batch: { trail, sourceId } }: { batch: ShownBatch }) {
  const { successor, replacedBy } = trail;
  const isStored = replacedBy !== null && replacedBy.outcome !== 'held';
  return (
    <div class="card" role="status">
      <p>
        A newer read of {sourceId} replaced this batch
        {replacedBy !== null && (
          <>
            : <a href={`/runs/${replacedBy.id}`}>run {replacedBy.id}</a> {isStored ? 'stored it' : 'was held'}
          </>
        )}
        . No decision about this batch is possible any more.
      </p>
      {successor === null ? (
        <p class="muted">No batch of {sourceId} waits now.</p>
      ) : (
        <p>
          <a class="button" href={`/held/${successor}`}>
            Open batch {successor}, which waits now
          </a>
        </p>
      )}
    </div>
  );
}

/** Lists the changes of the run that stored an approved batch. */
export function StoredDiff({ run, place }: { run: number; place: Place }) {
  const answer = useData<RunAnswer>(`/api/runs/${run}?${changesQuery(place)}`);
  const { data } = answer;
  return (
    <section aria-labelledby="stored">
      <h2 id="stored">Changes of the approval</h2>
      <Progress {...answer} />
      {data && !data.isKept && (
        <p class="calm">These changes are deleted. CHANGES_KEPT sets for how many days changes are stored.</p>
      )}
      {data?.isKept && data.diff.of !== 'rates' && data.diff.of !== 'lifecycles' && (
        <ChangeList diff={data.diff} place={place} isOld={answer.isOld} />
      )}
    </section>
  );
}

/** Lists sample rows of a batch after its full rows were deleted. */
export function WorstRows({ worst }: Pick<ShownBatch, 'worst'>) {
  if (worst.rows.length === 0) return null;
  return (
    <section aria-labelledby="worst">
      <h2 id="worst">Held changes</h2>
      <Table
        rows={worst.rows}
        id={({ change, name, place }) => `${change} ${place} ${name}`}
        name="Name"
        columns={[
          ['Change', ({ change }) => change],
          ['Name', ({ name }) => name],
          ['Region or organization', ({ place }) => place],
          ['Stored at that time', ({ before }) => before ?? '–'],
          ['In the batch', ({ after }) => after ?? 'not listed'],
        ]}
      />
      {worst.total > worst.rows.length && (
        <p class="muted">
          These are {worst.rows.length} of {worst.total} rows, those that change most.
        </p>
      )}
    </section>
  );
}
