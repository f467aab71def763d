/** Prices beyond the guard's factor that an operator accepts, one machine at a time. */

import type { Decider } from '../../domain/operator.ts';
import type { SourcePrice } from '../../domain/price.ts';
import type { Database } from '../connect.ts';
import { sql } from '../drizzle.ts';
import { acceptedPrices, quarantinedRows } from '../schema.ts';
import { insertInto } from '../statements.ts';
import { auditRow } from './audit.ts';

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
  decider: Decider,
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
        acceptedBy: decider.by,
        reason: decider.reason ?? null,
      })}
      from quarantined where same
      on conflict do nothing
      returning 1
    ), audited as (
      ${auditRow(decider, {
        action: 'price.accept',
        subject: { kind: 'source', id: sourceId },
        details: sql`jsonb_build_object('machine', ${rowKey}::text, 'price', price)`,
      })}
      from quarantined where exists (select from accepted)
    )
    select price, same from quarantined`);
  if (row === undefined) return { outcome: 'none' };
  return { outcome: row.same ? 'accepted' : 'other', price: row.price };
}
