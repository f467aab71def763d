/** Changes of an organization's clusters, from the changes feed: a change is in it when readers have it. */
import type { Database } from '../../db/connection/connect.ts';
import { and, asc, eq, gt, lte } from '../../db/connection/drizzle.ts';
import { feedChanges, feedHead } from '../../db/schema.ts';
import type { ClustersChanged } from './events.ts';

/** Rows of the feed that one check reads. A row has at most 500 changes. The next check reads the others. */
const MOST_ROWS = 20;

/** @param after the position that earlier messages reached */
export async function changedClusters(db: Database, organizationId: number, after: number) {
  const [head] = await db.select({ position: feedHead.position, pruned: feedHead.pruned }).from(feedHead);
  if (!head) throw new Error('unreachable: the feed has a head');
  const rows = await db
    .select({ last: feedChanges.last, kinds: feedChanges.kinds, slugs: feedChanges.slugs })
    .from(feedChanges)
    .where(
      and(
        eq(feedChanges.organizationId, organizationId),
        gt(feedChanges.last, after),
        lte(feedChanges.last, head.position),
      ),
    )
    .orderBy(asc(feedChanges.last))
    .limit(MOST_ROWS);
  const parts = rows.map(({ kinds, slugs }) => ({
    clusters: kinds.flatMap((kind, n) => {
      const change = /^cluster\.(created|changed|deleted)$/.exec(kind)?.[1] as
        | ClustersChanged['clusters'][number]['change']
        | undefined;
      const slug = slugs?.[n];
      return change === undefined || slug === undefined ? [] : [{ change, slug }];
    }),
    incomplete: false,
  }));
  return {
    parts: [...(head.pruned > after ? [{ clusters: [], incomplete: true }] : []), ...parts],
    /** The position of the feed that the parts reach. */
    position: rows.length < MOST_ROWS ? head.position : (rows.at(-1)?.last ?? head.position),
  };
}
