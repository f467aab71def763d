/** The stock of a machine over time: the statement, and the periods that its rows mean. */
import type { Stock } from '../domain/stock.ts';
import type { Database } from './connection/client.ts';
import { sql } from './connection/drizzle.ts';
import { type RowOf, rfc3339 } from './connection/statements.ts';
import { machineAvailability } from './schema.ts';

export interface StockChange {
  /** RFC 3339 with microseconds. */
  readonly at: string;
  readonly before: Stock | null;
  readonly after: Stock | null;
}

export interface StoredStock {
  /** Now; null for a machine in no list. */
  readonly stock: Stock | null;
  /** See `availableShare`. */
  readonly times: readonly number[] | null;
  /** RFC 3339 with microseconds: when the machine was first read. */
  readonly createdAt: string;
  /** The newest changes, the newest first; one more than `MOST_CHANGES` if there are more. */
  readonly changes: readonly StockChange[];
  /** Of the region's document, which rises with each change. */
  readonly version: number;
}

export interface StockPeriod {
  readonly stock: Stock;
  readonly from: string;
  /** Null if it lasts. */
  readonly to: string | null;
}

/** Changes that one answer may have. */
const MOST_CHANGES = 1000;

/** Returns undefined for an unknown machine. */
export async function readStock(db: Database, machineId: number): Promise<StoredStock | undefined> {
  const { changedAt, before, after } = machineAvailability;
  const [row] = await db.execute<RowOf<StoredStock>>(sql`
    select r.version::float8 as version, to_json(m.stock) as times, ${rfc3339(sql`m.created_at`, 'us')} as "createdAt",
      case when m.retired_at is not null then null when m.excluded_reason is null then 'available'
        when m.excluded_reason = 'sold_out' then 'sold_out' end as stock,
      coalesce((
        select json_agg(json_build_object('at', ${rfc3339(sql`h.changed_at`, 'us')}, 'before', h.before, 'after', h.after)
          order by h.changed_at desc)
        from (
          select ${changedAt}, ${before}, ${after} from ${machineAvailability}
          where ${machineAvailability.machineId} = ${machineId} order by ${changedAt} desc limit ${MOST_CHANGES + 1}
        ) h), '[]') as changes
    from machines m join regions r on r.id = m.region_id where m.id = ${machineId}`);
  return row;
}

/** Returns when the machine was in a list: periods, the newest first. */
export function stockPeriods({ stock, createdAt, changes }: StoredStock): StockPeriod[] {
  const periods: StockPeriod[] = [];
  const add = (state: Stock | null, from: string, to: string | null) => {
    if (state) periods.push({ stock: state, from, to });
  };
  let to: string | null = null;
  for (const { at, after } of changes.slice(0, MOST_CHANGES)) {
    add(after, at, to);
    to = at;
  }
  const first = changes.at(-1);
  // The begin of an older period is not known if there are more changes.
  if (changes.length <= MOST_CHANGES) add(first ? first.before : stock, createdAt, to);
  return periods;
}
