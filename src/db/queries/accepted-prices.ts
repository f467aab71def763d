/** Prices beyond the guard's factor that an operator accepts, one machine at a time. */
import type { SourcePrice } from '../../domain/price.ts';
import type { Sql } from '../connect.ts';

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
  sql: Sql,
  sourceId: string,
  rowKey: string,
  amount: string,
  { by, reason }: Decider,
): Promise<Acceptance> {
  const [row] = await sql<{ price: SourcePrice; same: boolean }[]>`
    with quarantined as (
      select region_code, name, price, (price ->> 'amount')::numeric = ${amount}::numeric as same
      from quarantined_rows where source_id = ${sourceId} and row_key = ${rowKey} and price is not null
    ), accepted as (
      insert into accepted_prices (source_id, region_code, name, amount, per, currency, accepted_by, reason)
      select ${sourceId}, region_code, name, (price ->> 'amount')::numeric, price ->> 'per', price ->> 'currency',
        ${by}, ${reason ?? null}
      from quarantined where same
      on conflict do nothing
    )
    select price, same from quarantined`;
  if (row === undefined) return { outcome: 'none' };
  return { outcome: row.same ? 'accepted' : 'other', price: row.price };
}
