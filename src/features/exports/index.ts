/** Files of the whole catalogue: a worker makes them, and readers serve them. See docs/exports.md. */
import type { Feature } from '../../app/feature.ts';
import { EXPORT_SETTINGS } from './settings.ts';

export const exportsFeature: Feature = {
  name: 'exports',
  settings: EXPORT_SETTINGS,
  read: async () => (await import('./part.ts')).readExports,
  work: async (context) => (await import('./part.ts')).makeExports(context),
  conditions: {
    kinds: {
      exports_behind:
        'for more than an hour, and two intervals, no files of the changed catalogue could be made',
    },
    find: async (sql, config) => (await import('./conditions.ts')).findBehind(sql, config),
  },
  check: async (config) => (await import('./doctor.ts')).checkExports(config),
};
