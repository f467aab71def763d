import type { ReaderContext, ReaderPart } from '../../app/feature.ts';
import { FEED_ID } from '../../snapshot/document/keys.ts';
import { FeedTail } from './feed-tail.ts';
import { addStreamSeries } from './metrics.ts';
import { feedApi } from './routes.ts';

export function readFeed(context: ReaderContext): ReaderPart {
  const { config, logger, documents, subscription, closing } = context;
  const feed = new FeedTail({
    run: (read, options) => documents.postgres(read, options),
    atOnce: Math.ceil(config.settings.POSTGRES_READS / 4),
    logger,
    isLinked: () => subscription.linked,
  });
  closing.defer(() => feed[Symbol.dispose]());
  documents.onPublished({
    onPublished(id, position) {
      if (id === FEED_ID) feed.advanceTo(position);
    },
    onLineage: () => feed.reset(),
  });
  return { api: feedApi(feed), addMetrics: (registry) => addStreamSeries(registry, feed) };
}
