import type { StoredRegionPrice } from '../../domain/prices/region-price.ts';
import type { StoredTerms } from '../../domain/prices/term.ts';
import type { Sql } from '../connection/client.ts';

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
