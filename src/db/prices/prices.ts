import type { ExclusionReason } from '../../domain/exclusion.ts';
import type { Decider } from '../../domain/operator.ts';
import type { SourcePrice } from '../../domain/prices/price.ts';
import { auditRow } from '../audit.ts';
import type { Sql } from '../connection/client.ts';
import type { Database } from '../connection/connect.ts';
import { sql } from '../connection/drizzle.ts';
import { instant } from '../connection/instant-text.ts';
import { insertInto } from '../connection/statements.ts';
import { acceptedPrices, quarantinedRows } from '../schema.ts';

export interface PriceHistory {
  readonly id: number;
  readonly name: string;
  readonly region: string;
  readonly provider: string;
  readonly excludedReason: string | null;
  readonly prices: readonly {
    readonly price: number | null;
    /** Why readers did not see the machine at this price; null if they did. */
    readonly withdrawn: Extract<ExclusionReason, 'zero_price' | 'no_exchange_rate'> | null;
    readonly sourceAmount: string;
    readonly sourcePer: string;
    readonly sourceCurrency: string;
    readonly from: string;
    readonly to: string | null;
  }[];
}

export async function machinesNamed(
  sql: Sql,
  name: string,
  region: string,
): Promise<{ readonly id: number; readonly provider: string }[]> {
  return sql<{ id: number; provider: string }[]>`
    select m.id, p.name as provider from regions r join machines m on m.region_id = r.id
    join providers p on p.id = r.provider_id
    where r.code = ${region} and m.name = ${name} and r.organization_id is null order by m.id`;
}

export async function priceHistory(sql: Sql, machineId: number): Promise<PriceHistory | undefined> {
  const [row] = await sql<PriceHistory[]>`
    select m.id, m.name, r.code as region, p.name as provider, m.excluded_reason as "excludedReason",
      (select coalesce(json_agg(json_build_object(
          'price', h.price,
          'withdrawn', case when h.price is null then 'no_exchange_rate' when h.price <= 0 then 'zero_price' end,
          'sourceAmount', h.source_amount::text, 'sourcePer', h.source_per,
          'sourceCurrency', h.source_currency,
          'from', ${instant(sql, 'h.valid_from')},
          'to', ${instant(sql, 'h.valid_to')}) order by h.valid_from desc), '[]')
        from machine_prices h where h.machine_id = m.id) as prices
    from machines m join regions r on r.id = m.region_id join providers p on p.id = r.provider_id
    where m.id = ${machineId}`;
  return row;
}

export type Acceptance =
  /** The next run with this price stores it. */
  | { readonly outcome: 'accepted'; readonly price: SourcePrice }
  | { readonly outcome: 'other'; readonly price: SourcePrice }
  | { readonly outcome: 'none' };

/** Accepts a quarantined price if it equals `amount`, a decimal. */
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
