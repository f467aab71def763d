/** Runs that changed the stock of a whole provider: its API may state it by mistake, and no guard holds stock. */
import type { Database } from '../connection/client.ts';
import { sql } from '../connection/drizzle.ts';
import type { RowOf } from '../connection/statements.ts';

export interface StockFlip {
  readonly sourceId: string;
  readonly runId: number;
  /** The new state of nearly all machines. */
  readonly to: 'sold_out' | 'available';
  /** Machines that the run changed so. */
  readonly changed: number;
  /** Published and sold-out machines of the source, and those in the new state. */
  readonly machines: number;
  readonly now: number;
  readonly regions: number;
}

/** Share of the machines that one run must change, and share that must be in the new state. */
const CHANGED_SHARE = 0.5;
const FLIPPED_SHARE = 0.95;
/** A source with fewer changes has no flip. */
const AT_LEAST = 3;

/**
 * Returns the flips of the last hour, without those of an operator's decision. Only the last run of a source that changed its stock
 * counts: the stored stock is what it left.
 */
export async function recentStockFlips(db: Database): Promise<StockFlip[]> {
  return db.execute<RowOf<StockFlip>>(sql`
    with latest as materialized (
      select distinct on (n.source_id) n.source_id, n.id as run_id, c.changed_at
      from sync_runs n join machine_changes c on c.changed_at = n.changed_at and c.run_id = n.id
      where n.finished_at > now() - interval '1 hour' and c.change in ('sold_out', 'restocked')
        and n.cause is distinct from 'decision'
      order by n.source_id, n.id desc
    ), changes as (
      select l.source_id, l.run_id, c.change, count(*)::int as changed, count(distinct m.region_id)::int as regions
      from latest l
      join machine_changes c on c.changed_at = l.changed_at and c.run_id = l.run_id and c.change in ('sold_out', 'restocked')
      join machines m on m.id = c.machine_id
      group by 1, 2, 3 having count(*) >= ${AT_LEAST}::int
    )
    select c.source_id as "sourceId", c.run_id::int as "runId",
      case c.change when 'sold_out' then 'sold_out' else 'available' end as to, c.changed, s.machines, s.now, c.regions
    from changes c cross join lateral (
      select count(*)::int as machines,
        (count(*) filter (where (m.excluded_reason is not null) = (c.change = 'sold_out')))::int as now
      from machines m
      where m.source_id = c.source_id and m.retired_at is null and coalesce(m.excluded_reason, 'sold_out') = 'sold_out'
    ) s
    where c.changed >= ${CHANGED_SHARE}::float8 * s.machines and s.now >= ${FLIPPED_SHARE}::float8 * s.machines
    order by c.run_id`);
}
