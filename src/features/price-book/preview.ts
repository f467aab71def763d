/** Computes what an entry would change, without storing it. */
import type { Sql } from '../../db/connection/client.ts';
import { instant } from '../../db/connection/instant-text.ts';
import type { Organization } from '../../db/organizations.ts';
import { storedCurrency } from '../../db/prices/currency.ts';
import { IS_PUBLISHED } from '../../db/shown-rows.ts';
import {
  type ClusterCost,
  costClusters,
  machinesNear,
  organizationClusters,
  shownMonth,
  sum,
} from '../../market/market.ts';
import { storedEntries } from '../../snapshot/document/price-book.ts';
import type { EntryPreview, GivenEntry, MonthCost } from './api.ts';
import { readNames } from './names.ts';
import type { BegunEntry } from './plan-import.ts';
import { entryToAdd } from './write.ts';

/** @throws BadEntry for each entry that cannot be added */
export async function previewEntry(sql: Sql, { id }: Organization, given: GivenEntry): Promise<EntryPreview> {
  const [names, [clock], entries, clusters, currency] = await Promise.all([
    readNames(sql, [given]),
    sql<{ now: string }[]>`select ${instant(sql, 'clock_timestamp()', 'ms')} as now`,
    storedEntries(sql, id),
    organizationClusters(sql, id),
    storedCurrency(sql),
  ]);
  const now = clock?.now ?? '';
  const added = entryToAdd(given, names, { now, entries });
  const isLater = added.from > now;
  const at = isLater ? added.from : now;
  const [machines, selected] = await Promise.all([machinesNear(sql, clusters), selectedBy(sql, id, added)]);
  const costsBy = (book: typeof entries) =>
    costClusters(clusters, machines, book, Date.parse(at)).map(({ cost }) => cost);
  const before = costsBy(entries);
  const after = costsBy([...entries, { ...added, id: 0 }]);
  return {
    currency: currency ?? null,
    at,
    isLater,
    machines: selected,
    clusters: clusters.length,
    affected: before.filter((cost, i) => !isEqual(cost, after[i])).length,
    before: monthCost(before),
    after: monthCost(after),
  };
}

const isEqual = (a: ClusterCost, b: ClusterCost | undefined): boolean =>
  a.known.perMonth === b?.known.perMonth && a.isComplete === b.isComplete;

function monthCost(costs: readonly ClusterCost[]): MonthCost {
  const knownPerMonth = shownMonth(sum(costs.map(({ known }) => known)).perMonth);
  return { perMonth: costs.every(({ isComplete }) => isComplete) ? knownPerMonth : null, knownPerMonth };
}

/** Counts the published machines that an entry selects. */
async function selectedBy(
  sql: Sql,
  organizationId: number,
  { providerId, regionId, family, machineId }: BegunEntry,
): Promise<number> {
  const [row] = await sql<{ machines: number }[]>`
    select count(*)::int as machines from machines m join regions r on r.id = m.region_id
    where ${sql.unsafe(IS_PUBLISHED)} and (r.organization_id is null or r.organization_id = ${organizationId})
      ${machineId === undefined ? sql`` : sql`and m.id = ${machineId}`}
      ${regionId === undefined ? sql`` : sql`and r.id = ${regionId}`}
      ${providerId === undefined ? sql`` : sql`and r.provider_id = ${providerId}`}
      ${family === undefined ? sql`` : sql`and starts_with(m.name, ${family})`}`;
  return row?.machines ?? 0;
}
