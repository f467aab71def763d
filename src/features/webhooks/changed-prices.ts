/** Changes of the prices of machines that an organization's clusters use. */
import type { Database } from '../../db/connection/connect.ts';
import { sql } from '../../db/connection/drizzle.ts';
import type { RowOf } from '../../db/connection/statements.ts';
import type { SeenState } from '../../db/schema.ts';
import type { ChangedPrice, StatedPrice } from './events.ts';

const MOST_SLUGS = 100;

interface UsedMachine {
  readonly id: number;
  readonly name: string;
  readonly provider: string;
  readonly region: string;
  readonly price: string | null;
  readonly amount: string;
  readonly per: string;
  readonly currency: string;
  readonly isPublished: boolean;
  readonly clusters: number;
  readonly slugs: readonly string[];
}

type SeenPrices = NonNullable<SeenState['prices']>;

/**
 * Compares the prices with those of the last check. An exchange rate changes no price of a source, so it is no event.
 * @param before undefined at the first check, which finds no change
 */
export async function changedPrices(db: Database, organizationId: number, before: SeenPrices | undefined) {
  const machines: ChangedPrice[] = [];
  const seen: Record<string, string> = {};
  for (const machine of await usedMachines(db, organizationId)) {
    const { id, isPublished } = machine;
    const now = textOf(machine);
    const old = before?.[id];
    // Readers do not have the price yet. The next check compares it.
    seen[id] = old !== undefined && !isPublished ? old : now;
    if (old !== undefined && old !== seen[id]) machines.push(changed(machine, priceIn(old)));
  }
  return { machines, seen };
}

function usedMachines(db: Database, organizationId: number) {
  return db.execute<RowOf<UsedMachine>>(sql`
    select m.id, m.name, p.name as provider, r.code as region, m.price::text as price,
      trim_scale(m.source_amount)::text as amount, m.source_per as per, m.source_currency as currency,
      r.published_version >= r.version as "isPublished", used.clusters, used.slugs
    from (
      select machine_id, count(*)::int as clusters,
        (array_agg(slug order by slug collate "C"))[:${sql.raw(String(MOST_SLUGS))}] as slugs
      from clusters where organization_id = ${organizationId} and retired_at is null group by machine_id
    ) used join machines m on m.id = used.machine_id join regions r on r.id = m.region_id
    join providers p on p.id = r.provider_id
    where m.source_amount is not null
    order by m.id`);
}

const textOf = ({ amount, per, currency }: StatedPrice): string => `${amount} ${currency}/${per}`;

function priceIn(text: string): StatedPrice {
  const [, amount = '', currency = '', per = ''] = /^(\S+) ([^\s/]+)\/(\S+)$/.exec(text) ?? [];
  return { amount, per, currency };
}

function changed(
  { amount, per, currency, price, clusters, slugs, isPublished: _, ...machine }: UsedMachine,
  before: StatedPrice,
): ChangedPrice {
  return {
    ...machine,
    before,
    after: { amount, per, currency },
    price: price === null ? null : Number(price),
    clusters: slugs,
    more: clusters - slugs.length,
  };
}
