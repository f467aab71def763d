/** Prices of machines for the costs of clusters. */
import type { MachineFacts } from '../../domain/machine-facts.ts';
import type { StoredRegionPrice } from '../../domain/prices/region-price.ts';
import type { StoredTerms } from '../../domain/prices/term.ts';
import type { Sql } from '../connection/client.ts';
import { instant } from '../connection/instant-text.ts';
import { selectedFacts } from '../machine-facts.ts';

/** A stored machine with its prices at one time. The published catalogue may lack it. */
export interface PricedMachine extends MachineFacts {
  readonly id: number;
  readonly name: string;
  readonly regionId: number;
  readonly providerId: number;
  /** On demand, per minute; null if it was unknown. */
  readonly price: string | null;
  readonly terms: StoredTerms | null;
  /** False if only clusters name the machine. */
  readonly isListed: boolean;
  /** When the oldest source of its region was last read, RFC 3339; null if none was. */
  readonly asOf: string | null;
  /** Of all prices; null before the first run. */
  readonly currency: string | null;
}

/**
 * Returns the machines with these ids that the organization may see, with their prices at a time, or the current ones. Row-level
 * security hides machines that only other organizations name. @param at RFC 3339
 */
export async function pricedMachines(
  sql: Sql,
  organizationId: number,
  ids: readonly number[],
  at?: string,
): Promise<readonly PricedMachine[]> {
  const [, rows] = await sql.begin('read only', (tx) => {
    const applies = tx`h.machine_id = m.id and h.valid_from <= ${at ?? null}::timestamptz
      and (h.valid_to is null or h.valid_to > ${at ?? null}::timestamptz)`;
    const past = tx`(select h.price from machine_prices h where ${applies}) as price,
      (select h.terms from machine_terms h where ${applies}) as terms`;
    return [
      tx`select set_config('app.org_id', ${String(organizationId)}, true)`,
      tx<PricedMachine[]>`
        select m.id, m.name, m.region_id as "regionId", r.provider_id as "providerId",
          ${tx.unsafe(selectedFacts('m'))},
          ${at === undefined ? tx`m.price, m.terms` : past},
          m.excluded_reason is distinct from 'unlisted' as "isListed",
          (select ${instant(tx, 'min(f.verified_at)', 'ms')}
           from region_freshness f where f.region_id = m.region_id) as "asOf",
          (select currency from lineage) as currency
        from machines m join regions r on r.id = m.region_id
        where m.id = any(${[...ids]}::integer[])`,
    ];
  });
  return rows;
}

export interface PriceHistory {
  /** Newest first. Times are RFC 3339 with microseconds; `to` is null for the current one. */
  readonly prices: readonly {
    readonly price: string | null;
    readonly from: string;
    readonly to: string | null;
  }[];
  readonly terms: readonly {
    readonly terms: StoredTerms;
    readonly from: string;
    readonly to: string | null;
  }[];
}

/** Rows of a history that one answer may have. */
const ROWS_AT_MOST = 1000;

/** Returns the newest prices of a machine that were valid after a time. @param after RFC 3339; undefined: all */
export async function pricesSince(
  sql: Sql,
  machineId: number,
  after: string | undefined,
): Promise<PriceHistory> {
  const listOf = (table: string, column: string, value: string) => sql`
    (select coalesce(json_agg(json_build_object(${column}::text, ${sql.unsafe(value)},
        'from', ${instant(sql, 'h.valid_from', 'us')},
        'to', ${instant(sql, 'h.valid_to', 'us')}) order by h.valid_from desc), '[]')
     from (select * from ${sql(table)} where machine_id = ${machineId}
             and coalesce(valid_to > ${after ?? null}::timestamptz, true)
           order by valid_from desc limit ${ROWS_AT_MOST}) h)`;
  const [row] = await sql<PriceHistory[]>`
    select ${listOf('machine_prices', 'price', 'h.price::text')} as prices,
           ${listOf('machine_terms', 'terms', 'h.terms')} as terms`;
  return row ?? { prices: [], terms: [] };
}

export interface MachinePriced {
  /** On demand, per minute; null without a price. */
  readonly price: string | null;
  readonly terms: StoredTerms | null;
  readonly regionPrices: readonly StoredRegionPrice[] | null;
}

/** Returns the current prices of a machine and of its region. */
export async function machinePriced(sql: Sql, machineId: number): Promise<MachinePriced | undefined> {
  const [row] = await sql<MachinePriced[]>`
    select case when m.price > 0 then m.price::text end as price, m.terms, r.prices as "regionPrices"
    from machines m join regions r on r.id = m.region_id where m.id = ${machineId}`;
  return row;
}
