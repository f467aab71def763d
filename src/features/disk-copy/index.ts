/** A reader's own copy on disk of what it serves. It answers if memory, Redis and Postgres do not. */
import type { Feature } from '../../app/feature.ts';
import { DISK_COPY_SETTINGS } from './settings.ts';

export const diskCopyFeature: Feature = {
  name: 'copy on disk',
  settings: DISK_COPY_SETTINGS,
  copy: async () => (await import('./disk-copy.ts')).openDiskCopy,
  check: async (config) => (await import('./doctor.ts')).checkDiskCopy(config),
};
