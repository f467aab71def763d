/** The changes feed, `/v1/changes`: a publisher adds to it, and readers serve its end to all who follow it. */
import type { Feature } from '../../app/feature.ts';
import { FEED_ID } from '../../snapshot/document/keys.ts';
import { pruneFeed } from './events.ts';
import { feedFollower } from './feed-publisher.ts';
import { FeedTail } from './feed-tail.ts';
import { addStreamSeries } from './metrics.ts';
import { feedApi } from './routes.ts';

export const feedFeature: Feature = {
  name: 'feed',

  read({ config: { settings }, logger, documents, subscription, closing }) {
    const feed = new FeedTail({
      run: (read, check) => documents.postgres(read, check),
      atOnce: Math.ceil(settings.POSTGRES_READS / 4),
      logger,
      isLinked: () => subscription.linked,
    });
    closing.defer(() => feed[Symbol.dispose]());
    documents.onPublished({
      onPublished(id, position) {
        if (id === FEED_ID) feed.heard(position);
      },
      onLineage: () => feed.reset(),
    });
    return { api: feedApi(feed), addMetrics: (registry) => addStreamSeries(registry, feed) };
  },

  follow: feedFollower,
  prune: (db, { settings }) => pruneFeed(db, settings.CHANGES_KEPT),
};
