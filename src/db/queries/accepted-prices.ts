/** Prices beyond the guard's factor that an operator accepts, one machine at a time. */
import { sql } from 'drizzle-orm';
import type { SourcePrice } from '../../domain/price.ts';
import type { Database } from '../connect.ts';
import { acceptedPrices, quarantinedRows } from '../schema.ts';
import { insertInto } from '../statements.ts';

export interface Decider {
  /** Who decides, e.g. `ada@desk`. */
  readonly by: string;
  readonly reason: string | undefined;
}

export type Acceptance =
  /** The next run that reads this price stores it. */
  | { readonly outcome: 'accepted'; readonly price: SourcePrice }
  /** Another price is quarantined by now. */
  | { readonly outcome: 'other'; readonly price: SourcePrice }
  /** No price of that row is quarantined. */
  | { readonly outcome: 'none' };

/** Accepts a quarantined price, if it is the one that the operator names. @param amount a decimal */
export async function acceptPrice(
  db: Database,
  sourceId: string,
  rowKey: string,
  amount: string,
  { by, reason }: Decider,
): Promise<Acceptance> {
  const q = quarantinedRows;
  const [row] = await db.execute<{ price: SourcePrice; same: boolean }>(sql`
    with quarantined as (
      select ${q.regionCode}, ${q.name}, ${q.price}, (${q.price} ->> 'amount')::numeric = ${amount}::numeric as same
      from ${q} where ${q.sourceId} = ${sourceId} and ${q.rowKey} = ${rowKey} and ${q.price} is not null
    ), accepted as (
      ${insertInto(acceptedPrices, {
        sourceId,
        regionCode: sql`region_code`,
        name: sql`name`,
        amount: sql`(price ->> 'amount')::numeric`,
        per: sql`price ->> 'per'`,
        currency: sql`price ->> 'currency'`,
        acceptedBy: by,
        reason: reason ?? null,
      })}
      from quarantined where same
      on conflict do nothing
    )
    select price, same from quarantined`);
  if (row === undefined) return { outcome: 'none' };
  return { outcome: row.same ? 'accepted' : 'other', price: row.price };
}
