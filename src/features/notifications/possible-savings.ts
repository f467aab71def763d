/** Savings of an organization's clusters that have become possible. */
import type { Database } from '../../db/connection/connect.ts';
import { sql } from '../../db/connection/drizzle.ts';
import { only, type RowOf } from '../../db/connection/statements.ts';
import type { SeenState } from '../../db/schema.ts';
import {
  type Cheaper,
  type CostOfCluster,
  monthUnits,
  type RegionCandidate,
  readCostsAndSavings,
  shownMonth,
} from '../../market/market.ts';

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
  db: Database,
  organizationId: number,
  threshold: string,
  before: SeenSavings | undefined,
  now: Date,
) {
  const { mark, isPublished } = await readMark(db, organizationId, now);
  // Readers do not have all prices yet, or nothing has changed.
  if (!isPublished || mark === before?.mark) return { clusters: [], seen: before };
  const { costs, best } = await readCostsAndSavings(db, organizationId, now.getTime());
  const least = monthUnits(threshold);
  const above = costs.costs
    .flatMap((cost) => {
      const found = best.get(cost);
      return found && found.saving >= least ? [{ cost, best: found }] : [];
    })
    .sort((a, b) => (a.cost.cluster.slug < b.cost.cluster.slug ? -1 : 1));
  const known = new Set(before?.clusters);
  return {
    clusters: above.filter(({ cost }) => !known.has(cost.cluster.id)).map(shownSaving),
    seen: { mark, clusters: above.map(({ cost }) => cost.cluster.id) },
  };
}

/** Returns a text that changes with the clusters, the prices near them and the entries of the price book that apply. */
async function readMark(db: Database, organizationId: number, now: Date): Promise<Marked> {
  const at = now.toISOString();
  const rows = await db.execute<RowOf<Marked>>(sql`
    with used as (
      select distinct m.region_id as id from clusters c join machines m on m.id = c.machine_id
      where c.organization_id = ${organizationId} and c.retired_at is null
    )
    select concat_ws(':', o.clusters_version, (select sum(r.version) from used join regions r using (id)),
        (select string_agg(e.id::text, ',' order by e.id) from price_book_entries e where e.organization_id = o.id
          and e.valid_from <= ${at}::timestamptz and (e.valid_to is null or e.valid_to > ${at}::timestamptz))) as mark,
      not exists (select from used join regions r using (id) where r.published_version < r.version) as "isPublished"
    from organizations o
    where o.id = ${organizationId}`);
  return only(rows);
}

function shownSaving({
  cost: { cluster, machine },
  best,
}: {
  readonly cost: CostOfCluster;
  readonly best: Cheaper<RegionCandidate>;
}): PossibleSaving {
  const { slug, where } = cluster;
  const { id, name } = machine.stored;
  return {
    slug,
    provider: where.provider.name,
    region: where.region.code,
    machine: { id, name },
    alternative: { id: best.candidate.id, name: best.candidate.name },
    saving_per_month: shownMonth(best.saving),
  };
}
