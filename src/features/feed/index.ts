/** The changes feed, `/v1/changes`: the publisher appends changes, and readers serve them. */
import type { Feature } from '../../app/feature.ts';

export const feedFeature: Feature = {
  name: 'feed',
  read: async () => (await import('./part.ts')).readFeed,
  follow: (context) => async (which) => (await import('./append.ts')).feedFollower(context)(which),
  prune: async (db, { settings }) => (await import('./append.ts')).pruneFeed(db, settings.CHANGES_KEPT),
};
