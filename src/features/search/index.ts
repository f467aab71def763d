/** Searches of machines over all regions, answered from an index in a reader's memory. */
import type { Feature } from '../../app/feature.ts';

export const searchFeature: Feature = {
  name: 'search',
  read: async () => (await import('./part.ts')).readSearch,
};
