/** What single runs did. Their alerts open and resolve at once. */
import type { Sql } from '../../db/connection/client.ts';
import type { Database } from '../../db/connection/database.ts';
import { and, eq, inArray } from '../../db/connection/drizzle.ts';
import { recentStockFlips } from '../../db/runs/stock-flips.ts';
import { alerts } from '../../db/schema.ts';
import type { Condition } from '../../domain/alert.ts';
import { noun } from '../../domain/text/quantities.ts';
import type { AlertRules } from './rules.ts';

interface MovedPrices {
  readonly sourceId: string;
  readonly runId: number;
  readonly count: number;
  /** The largest moves, in amounts of the source. */
  readonly first: readonly {
    readonly machine: string;
    readonly region: string;
    readonly before: string;
    readonly after: string;
    readonly per: string;
    readonly currency: string;
  }[];
}

/** Largest accepted difference between the clocks of a worker and of the database. */
const CLOCKS = '5 s';

/** Returns a condition for each run of the last hour that moved prices too far, unless an operator approved them. */
export async function findPriceMoves(sql: Sql, { priceRatio }: AlertRules): Promise<Condition[]> {
  const moves = await sql<MovedPrices[]>`
    with moved as (
      select n.source_id, n.id as run_id, m.name, r.code, old.source_amount as before, new.source_amount as after,
        new.source_per as per, new.source_currency as currency,
        greatest(new.source_amount / old.source_amount, old.source_amount / new.source_amount) as factor
      from sync_runs n
      join machine_prices new
        on new.valid_from between n.started_at - ${CLOCKS}::interval and n.finished_at + ${CLOCKS}::interval
      join machines m on m.id = new.machine_id and m.source_id = n.source_id
      join regions r on r.id = m.region_id
      join machine_prices old on old.machine_id = new.machine_id and old.valid_to = new.valid_from
      where n.finished_at > now() - interval '1 hour' and n.outcome = 'changed' and n.changed > 0
        and not exists (select from alerts a where a.key = 'prices_moved:' || n.source_id || '#' || n.id)
        and old.source_amount > 0 and new.source_amount > 0
        and not exists (
          select from sync_runs d where d.source_id = n.source_id and d.cause = 'decision'
            and new.valid_from between d.started_at - ${CLOCKS}::interval and d.finished_at + ${CLOCKS}::interval)
        and old.source_per = new.source_per and old.source_currency = new.source_currency
    ), counted as (
      select *, row_number() over (partition by run_id order by factor desc, code, name) as place
      from moved where factor > ${priceRatio}
    )
    select source_id as "sourceId", run_id::int as "runId", count(*)::int as count,
      json_agg(json_build_object('machine', name, 'region', code, 'before', before::text, 'after', after::text,
        'per', per, 'currency', currency) order by place) filter (where place <= 5) as first
    from counted group by source_id, run_id order by run_id`;
  return moves.map(({ sourceId, runId, count, first }) => ({
    kind: 'prices_moved',
    subject: `${sourceId}#${runId}`,
    summary: `${count} ${noun(count, 'price')} of ${sourceId} moved by more than a factor of ${priceRatio}`,
    details: { source: sourceId, run: runId, count, first },
  }));
}

/** Returns a condition for each flip of the last hour that has no alert yet. Readers see the new stock already. */
export async function findStockFlips(db: Database): Promise<Condition[]> {
  const flips = await recentStockFlips(db);
  if (flips.length === 0) return [];
  const subjects = flips.map(({ sourceId, runId }) => `${sourceId}#${runId}`);
  const known = await db
    .select({ subject: alerts.subject })
    .from(alerts)
    .where(and(eq(alerts.kind, 'stock_flipped'), inArray(alerts.subject, subjects)));
  const isKnown = new Set(known.map(({ subject }) => subject));
  return flips
    .map(({ sourceId, runId, ...counts }) => ({
      kind: 'stock_flipped',
      subject: `${sourceId}#${runId}`,
      summary: `${counts.now} of ${counts.machines} machines of ${sourceId} are ${counts.to === 'sold_out' ? 'sold out' : 'available'}: run ${runId} changed ${counts.changed} of them at once`,
      details: { source: sourceId, run: runId, ...counts },
    }))
    .filter(({ subject }) => !isKnown.has(subject));
}
