/** Savings of an organization's clusters that have become possible. */
import type { Sql } from '../../db/connection/client.ts';
import type { SeenState } from '../../db/schema.ts';
import {
  type CostedCluster,
  costClusters,
  machinesNear,
  monthUnits,
  type OrganizationCluster,
  organizationClusters,
  shownMonth,
} from '../../market/market.ts';
import { storedEntries } from '../../snapshot/document/price-book.ts';

/** A cluster that another machine of its region would make cheaper. */
export interface PossibleSaving {
  readonly slug: string;
  readonly provider: string;
  readonly region: string;
  readonly machine: { readonly id: number; readonly name: string };
  readonly alternative: { readonly id: number; readonly name: string };
  readonly saving_per_month: number;
}

type SeenSavings = NonNullable<SeenState['savings']>;

interface Marked {
  readonly mark: string;
  readonly isPublished: boolean;
}

/**
 * Returns the clusters whose saving has reached the threshold since the last check. The first check reports those that exist.
 * @param threshold per month in the published currency, a plain decimal
 * @param before undefined at the first check
 */
export async function possibleSavings(
  sql: Sql,
  organizationId: number,
  threshold: string,
  before: SeenSavings | undefined,
  now: Date,
) {
  const { mark, isPublished } = await readMark(sql, organizationId, now);
  // Readers do not have all prices yet, or nothing has changed.
  if (!isPublished || mark === before?.mark) return { clusters: [], seen: before };
  const [clusters, entries] = await Promise.all([
    organizationClusters(sql, organizationId),
    storedEntries(sql, organizationId),
  ]);
  const machines = await machinesNear(sql, clusters);
  const least = monthUnits(threshold);
  const above = costClusters(clusters, machines, entries, now.getTime()).filter(
    ({ best }) => best !== null && best.saving >= least,
  );
  const known = new Set(before?.clusters);
  return {
    clusters: above.filter(({ cluster }) => !known.has(cluster.id)).flatMap(shownSaving),
    seen: { mark, clusters: above.map(({ cluster }) => cluster.id) },
  };
}

/** Returns a text that changes with the clusters, the prices near them and the entries of the price book that apply. */
async function readMark(sql: Sql, organizationId: number, now: Date): Promise<Marked> {
  const [row] = await sql<Marked[]>`
    with used as (
      select distinct c.region_id as id from clusters c where c.organization_id = ${organizationId} and c.retired_at is null
    )
    select concat_ws(':', o.clusters_version, (select sum(r.version) from used join regions r using (id)),
        (select string_agg(e.id::text, ',' order by e.id) from price_book_entries e where e.organization_id = o.id
          and e.valid_from <= ${now} and (e.valid_to is null or e.valid_to > ${now}))) as mark,
      not exists (select from used join regions r using (id) where r.published_version < r.version) as "isPublished"
    from organizations o
    where o.id = ${organizationId}`;
  if (!row) throw new Error('unreachable: the webhook belongs to an organization');
  return row;
}

function shownSaving({ cluster, best }: CostedCluster<OrganizationCluster>): PossibleSaving[] {
  if (!best) return [];
  const { slug, provider, region, machineId, machineName } = cluster;
  return [
    {
      slug,
      provider: provider.name,
      region,
      machine: { id: machineId, name: machineName },
      alternative: { id: best.machine.id, name: best.machine.name },
      saving_per_month: shownMonth(best.saving),
    },
  ];
}
