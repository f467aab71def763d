import type { ExclusionReason } from '../../domain/machine.ts';
import type { Decider } from '../../domain/operator.ts';
import type { SourcePrice } from '../../domain/prices/price.ts';
import { auditRow } from '../audit.ts';
import type { Database } from '../connection/connect.ts';
import { and, eq, isNull, sql } from '../connection/drizzle.ts';
import { insertInto, type RowOf, rfc3339 } from '../connection/statements.ts';
import { acceptedPrices, machinePrices, machines, providers, quarantinedRows, regions } from '../schema.ts';

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
  db: Database,
  name: string,
  region: string,
): Promise<{ readonly id: number; readonly provider: string }[]> {
  return db
    .select({ id: machines.id, provider: providers.name })
    .from(machines)
    .innerJoin(regions, eq(regions.id, machines.regionId))
    .innerJoin(providers, eq(providers.id, regions.providerId))
    .where(and(eq(regions.code, region), eq(machines.name, name), isNull(regions.organizationId)))
    .orderBy(machines.id);
}

export async function priceHistory(db: Database, machineId: number): Promise<PriceHistory | undefined> {
  const { price, sourceAmount, sourcePer, sourceCurrency, validFrom, validTo } = machinePrices;
  const [row] = await db.execute<RowOf<PriceHistory>>(sql`
    select ${machines.id}, ${machines.name}, ${regions.code} as region, ${providers.name} as provider,
      ${machines.excludedReason} as "excludedReason",
      (select coalesce(json_agg(json_build_object(
          'price', ${price},
          'withdrawn', case when ${price} is null then 'no_exchange_rate' when ${price} <= 0 then 'zero_price' end,
          'sourceAmount', ${sourceAmount}::text, 'sourcePer', ${sourcePer}, 'sourceCurrency', ${sourceCurrency},
          'from', ${rfc3339(validFrom)}, 'to', ${rfc3339(validTo)}) order by ${validFrom} desc), '[]')
        from ${machinePrices} where ${machinePrices.machineId} = ${machines.id}) as prices
    from ${machines} join ${regions} on ${regions.id} = ${machines.regionId}
    join ${providers} on ${providers.id} = ${regions.providerId}
    where ${machines.id} = ${machineId}`);
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
