/** The changes feed, `/v1/changes`: a publisher adds to it, and readers serve its end to all who follow it. */
import type { Feature } from '../../app/feature.ts';

export const feedFeature: Feature = {
  name: 'feed',
  read: async () => (await import('./part.ts')).readFeed,
  follow: (context) => async (which) => (await import('./feed-publisher.ts')).feedFollower(context)(which),
  prune: async (db, { settings }) => (await import('./events.ts')).pruneFeed(db, settings.CHANGES_KEPT),
};
