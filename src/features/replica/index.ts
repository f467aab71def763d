/** Readers on a streaming replica of PostgreSQL, which may be behind its primary. */
import type { Feature } from '../../app/feature.ts';

export const replicaFeature: Feature = {
  name: 'replica',
  replica: async () => (await import('./part.ts')).openReplica,
  check: async (config) => (await import('./doctor.ts')).checkReplica(config),
};
