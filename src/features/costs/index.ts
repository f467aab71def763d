/** What machines and clusters cost: terms, prices of regions, and the costs of an organization's clusters. */
import type { Feature } from '../../app/feature.ts';

export const costsFeature: Feature = {
  name: 'costs',
  read: async () => (await import('./part.ts')).readCosts,
};
