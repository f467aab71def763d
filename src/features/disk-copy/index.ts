/** A reader's own copy on disk of what it serves. It answers when neither memory, Redis nor Postgres does. */
import type { Feature } from '../../app/feature.ts';
import { settingsOf } from '../../config/settings.ts';
import { DiskCopy } from './disk-copy.ts';
import { checkDiskCopy } from './doctor.ts';
import { addDiskCopySeries } from './metrics.ts';
import { bytesOfCopy, DISK_COPY_SETTINGS } from './settings.ts';

export const diskCopyFeature: Feature = {
  name: 'copy on disk',
  settings: DISK_COPY_SETTINGS,

  copy({ config, logger, closing }) {
    const { SNAPSHOT_DIR: folder } = settingsOf(config, DISK_COPY_SETTINGS);
    if (folder === undefined) return undefined;
    const { settings } = config;
    const limits = {
      bytes: bytesOfCopy(settings),
      staleLimitMs: settings.STALE_LIMIT * 1000,
      tokenStaleLimitMs: settings.TOKEN_STALE_LIMIT * 1000,
    };
    const copy = closing.use(new DiskCopy({ folder, limits, logger }));
    return { copy, addMetrics: (registry) => addDiskCopySeries(registry, copy.counts) };
  },

  check: checkDiskCopy,
};
