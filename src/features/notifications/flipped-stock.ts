/** Flips of the stock of providers whose machines an organization's clusters use. */
import type { Database } from '../../db/connection/database.ts';
import { sql } from '../../db/connection/drizzle.ts';
import { array } from '../../db/connection/statements.ts';
import { recentStockFlips } from '../../db/runs/stock-flips.ts';
import type { ProviderFlip } from './events.ts';

const MOST_SLUGS = 100;

/** @param before the last seen run; undefined at the first check, which finds no flip */
export async function flippedStock(
  db: Database,
  organizationId: number,
  before: number | undefined,
): Promise<{ readonly flips: readonly ProviderFlip[]; readonly seen: number }> {
  const recent = await recentStockFlips(db);
  const seen = Math.max(before ?? 0, ...recent.map(({ runId }) => runId));
  const fresh = before === undefined ? [] : recent.filter(({ runId }) => runId > before);
  if (fresh.length === 0) return { flips: [], seen };
  const sources = fresh.map(({ sourceId }) => sourceId);
  const used = await db.execute<{
    sourceId: string;
    provider: string;
    clusters: number;
    slugs: string[];
  }>(sql`
    select m.source_id as "sourceId", p.name as provider, count(*)::int as clusters,
      (array_agg(c.slug order by c.slug collate "C"))[:${sql.raw(String(MOST_SLUGS))}] as slugs
    from clusters c join machines m on m.id = c.machine_id join regions r on r.id = m.region_id
    join providers p on p.id = r.provider_id
    where c.organization_id = ${organizationId} and c.retired_at is null and m.source_id = any(${array(sources, 'text')})
    group by 1, 2`);
  const flips = fresh.flatMap(({ sourceId, runId: _, ...counts }) =>
    used
      .filter((each) => each.sourceId === sourceId)
      .map(({ provider, clusters, slugs }) => ({
        provider,
        ...counts,
        clusters: slugs,
        more: clusters - slugs.length,
      })),
  );
  return { flips, seen };
}
