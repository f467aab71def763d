/** Changes of the prices of machines that an organization's clusters use. */
import type { Database } from '../../db/connection/connect.ts';
import { sql } from '../../db/connection/drizzle.ts';
import type { RowOf } from '../../db/connection/statements.ts';
import type { SeenState } from '../../db/schema.ts';
import {
  type BookForTerm,
  bookForTerm,
  type PriceBookEntry,
  type SelectedMachine,
} from '../../domain/prices/price-book.ts';
import { nodePrice, nodePriceBy } from '../../market/market.ts';
import { BOOK_ENTRY_JSON } from '../../snapshot/document/price-book.ts';
import type { ChangedPrice, StatedPrice } from './events.ts';

const MOST_SLUGS = 100;

interface UsedMachine extends SelectedMachine {
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
export async function changedPrices(
  db: Database,
  organizationId: number,
  before: SeenPrices | undefined,
  now: Date,
) {
  const changes: { readonly machine: UsedMachine; readonly old: string }[] = [];
  const seen: Record<string, string> = {};
  for (const machine of await usedMachines(db, organizationId)) {
    const { id, isPublished } = machine;
    const stated = textOf(machine);
    const old = before?.[id];
    // Readers do not have the price yet. The next check compares it.
    seen[id] = old !== undefined && !isPublished ? old : stated;
    if (old !== undefined && old !== seen[id]) changes.push({ machine, old });
  }
  const entries = changes.length > 0 ? await priceBookOf(db, organizationId) : [];
  const book = bookForTerm(entries, 'on_demand', now.getTime());
  const machines = changes.map(({ machine, old }) => changed(machine, priceIn(old), book));
  return { machines, seen };
}

async function priceBookOf(db: Database, organizationId: number): Promise<PriceBookEntry[]> {
  const rows = await db.execute<RowOf<{ entry: PriceBookEntry }>>(sql`
    select ${sql.raw(BOOK_ENTRY_JSON)} as entry from price_book_entries e where e.organization_id = ${organizationId}`);
  return [...rows].map(({ entry }) => entry);
}

function usedMachines(db: Database, organizationId: number) {
  return db.execute<RowOf<UsedMachine>>(sql`
    select m.id, m.name, m.region_id as "regionId", r.provider_id as "providerId", p.name as provider, r.code as region, m.price::text as price,
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
  { amount, per, currency, price, clusters, slugs, ...machine }: UsedMachine,
  before: StatedPrice,
  book: BookForTerm,
): ChangedPrice {
  const { id, name, provider, region } = machine;
  const list = price === null ? null : nodePrice(price, null);
  const own = nodePriceBy(list, book.entryOf(machine));
  return {
    ...{ id, name, provider, region },
    before,
    after: { amount, per, currency },
    price: own && Number(own.price),
    list_price: list && Number(list.price),
    clusters: slugs,
    more: clusters - slugs.length,
  };
}
