import type { ExclusionReason } from '../../domain/exclusion.ts';
import type { Sql } from '../client.ts';

export interface PriceHistory {
  readonly id: number;
  readonly name: string;
  readonly region: string;
  readonly provider: string;
  readonly excludedReason: string | null;
  /** Newest first. */
  readonly prices: readonly {
    /** Per minute, in the published currency; null for one that could not be converted. */
    readonly price: number | null;
    /** Why the price kept the machine from readers in that time; null where it did not. */
    readonly withdrawn: Extract<ExclusionReason, 'zero_price' | 'no_exchange_rate'> | null;
    readonly sourceAmount: string;
    readonly sourcePer: string;
    readonly sourceCurrency: string;
    /** RFC 3339. */
    readonly from: string;
    readonly to: string | null;
  }[];
}

/** The machines of a name in a region, by its code, one of each provider at most. */
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

/** What a machine has cost; undefined for an id that no machine has. Published or not: it is an operator's view. */
export async function priceHistory(sql: Sql, machineId: number): Promise<PriceHistory | undefined> {
  const [row] = await sql<PriceHistory[]>`
    select m.id, m.name, r.code as region, p.name as provider, m.excluded_reason as "excludedReason",
      (select coalesce(json_agg(json_build_object(
          'price', h.price,
          'withdrawn', case when h.price is null then 'no_exchange_rate' when h.price <= 0 then 'zero_price' end,
          'sourceAmount', h.source_amount::text, 'sourcePer', h.source_per,
          'sourceCurrency', h.source_currency,
          'from', to_char(h.valid_from at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
          'to', to_char(h.valid_to at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')) order by h.valid_from desc), '[]')
        from machine_prices h where h.machine_id = m.id) as prices
    from machines m join regions r on r.id = m.region_id join providers p on p.id = r.provider_id
    where m.id = ${machineId}`;
  return row;
}
