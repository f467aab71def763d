import { readLineage } from '../../db/lineage.ts';
import { CacheKeys, FEED_ID, lanesOf } from '../../snapshot/document/keys.ts';
import type { FollowerContext, PublicationFollower } from '../../snapshot/publish/publisher.ts';
import { appendChanges } from './append.ts';

/** Appends published changes to the feed. A list that readers have is never behind its changes. */
export function feedFollower({ db, redis }: FollowerContext): PublicationFollower {
  return async (which) => {
    const { position, changes } = await appendChanges(db, which);
    if (changes === 0 || redis.status !== 'ready') return;
    const keys = new CacheKeys(await readLineage(db.$client), lanesOf(redis));
    // Readers that miss this message poll the feed.
    await redis
      .fleetbookAnnounce(keys.revision(keys.laneOf(FEED_ID)), keys.published, FEED_ID, String(position))
      .catch(() => {});
  };
}
