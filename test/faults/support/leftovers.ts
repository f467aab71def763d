/** Rows in PostgreSQL that a worker must not leave when it dies, or continues late. */
import type { Store } from '../../../src/db/connection/connect.ts';
import { IS_LIVE } from '../../../src/db/runs/status.ts';
import { dirtyDocuments } from '../../../src/db/versions.ts';

/** Returns a line for each kind of row without an owner, and for an active run. */
export async function leftovers({ sql, db }: Store): Promise<string[]> {
  const [row] = await sql<Record<string, number>[]>`
    select
      (select count(*) from sync_runs r where r.outcome = 'running'
         and not ${sql.unsafe(IS_LIVE)})::integer as "runs that seem to run and have no process",
      (select count(*) from sync_runs r where r.outcome = 'running'
         and ${sql.unsafe(IS_LIVE)})::integer as "runs under way",
      (select count(*) from held_items i join held_batches b on b.id = i.batch_id
         where b.status <> 'pending' and not b.reversible)::integer as "items of held batches that are decided",
      (select count(*) from held_batches b join sync_runs r on r.id = b.run_id
         where r.outcome <> 'held')::integer as "held batches whose run has not held them",
      (select count(*) from held_batches b where b.status = 'pending' and exists (
         select from sync_runs r where r.source_id = b.source_id and r.id > b.run_id
           and r.outcome in ('changed', 'unchanged', 'held')))::integer as "held batches that a later run has overtaken",
      (select count(*) from schedule_slots s where s.enqueued_at is null
         and s.due_at is not null)::integer as "slots that are in no queue",
      (select count(*) from schedule_slots s join sources on id = schedule where s.due_at is not null
         )::integer as "slots that are not done with",
      (select count(*) from pg_class c join pg_namespace n on n.oid = c.relnamespace
         where n.nspname like 'pg\\_temp\\_%' and c.relkind = 'r')::integer as "staging tables",
      (select count(*) from machines m where m.retired_at is null and (
         select count(*) from machine_prices p where p.machine_id = m.id and p.valid_to is null) <> 1
         )::integer as "machines without one present price",
      (select count(*) from machines m join lateral (
         select price from machine_prices p where p.machine_id = m.id and p.valid_to is null) p on true
         where m.retired_at is null and p.price <> m.price)::integer as "machines with another price than their history",
      (select count(*) from (
         select lead(valid_from) over (partition by machine_id order by valid_from) is distinct from valid_to as torn
         from machine_prices) p where torn)::integer as "gaps and overlaps in histories of prices"`;
  const found = Object.entries(row ?? {}).filter(([, count]) => count > 0);
  const dirty = await dirtyDocuments(db, 1000);
  return [
    ...found.map(([what, count]) => `${count} ${what}`),
    ...(dirty.length > 0 ? [`${dirty.length} documents that are not published`] : []),
  ];
}
