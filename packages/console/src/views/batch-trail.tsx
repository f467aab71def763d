/** What happened to a held batch: the run that read it, the batch that replaced it, and what its approval changed. */
import type { RunAnswer, ShownBatch } from '../../../../src/features/console/routes/api.ts';
import { useData } from '../lib/data.ts';
import type { Place } from '../lib/router.ts';
import { Trouble } from '../parts/basics.tsx';
import { ChangeList, changesQuery } from '../parts/change-table.tsx';

/** Links to the runs of a batch. */
export function Runs({ trail: { heldBy, storedBy, undoneBy } }: Pick<ShownBatch, 'trail'>) {
  const runs = [
    ['read by', heldBy],
    ['stored by', storedBy],
    ['taken back by', undoneBy],
  ] as const;
  const kept = runs.filter(([, id]) => id !== null);
  if (kept.length === 0) return null;
  return (
    <>
      <dt>Runs</dt>
      <dd>
        {kept.map(([what, id], i) => (
          <span key={what}>
            {i > 0 && ', '}
            {what} <a href={`/runs/${id}`}>run {id}</a>
          </span>
        ))}
      </dd>
    </>
  );
}

/** Where a superseded batch leads on to. */
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
        . Nothing can be decided about this batch any more.
      </p>
      {successor === null ? (
        <p class="muted">No batch of {sourceId} waits now.</p>
      ) : (
        <p>
          <a class="button" href={`/held/${successor}`}>
            Look at batch {successor}, which waits now
          </a>
        </p>
      )}
    </div>
  );
}

/** What the run changed that stored an approved batch. */
export function StoredDiff({ run, place }: { run: number; place: Place }) {
  const { data, error, isOld } = useData<RunAnswer>(`/api/runs/${run}?${changesQuery(place)}`);
  return (
    <section aria-labelledby="stored">
      <h2 id="stored">What its approval changed</h2>
      <Trouble text={error} />
      {data && !data.isKept && (
        <p class="calm">These changes are not kept. CHANGES_KEPT sets for how long.</p>
      )}
      {data?.isKept && data.diff.of !== 'rates' && (
        <ChangeList diff={data.diff} place={place} isOld={isOld} />
      )}
    </section>
  );
}

/** The rows that said most about a batch whose items are not kept. */
export function WorstRows({ worst }: Pick<ShownBatch, 'worst'>) {
  if (worst === null || worst.rows.length === 0) return null;
  return (
    <section aria-labelledby="worst">
      <h2 id="worst">What it would have changed</h2>
      <table class="cards">
        <thead>
          <tr>
            <th scope="col">Change</th>
            <th scope="col">Name</th>
            <th scope="col">Region or organization</th>
            <th scope="col">Stored then</th>
            <th scope="col">In the batch</th>
          </tr>
        </thead>
        <tbody>
          {worst.rows.map(({ change, name, place, before, after }) => (
            <tr key={`${change} ${place} ${name}`}>
              <td data-label="Change">{change}</td>
              <th scope="row" data-label="Name">
                {name}
              </th>
              <td data-label="Place">{place}</td>
              <td data-label="Stored then">{before ?? '–'}</td>
              <td data-label="In the batch">{after ?? 'not listed'}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {worst.total > worst.rows.length && (
        <p class="muted">
          These are {worst.rows.length} of {worst.total} rows, those that change most.
        </p>
      )}
    </section>
  );
}
