import type { CopyContext, CopyPart } from '../../app/feature.ts';
import { settingsOf } from '../../config/settings.ts';
import { DiskCopy } from './disk-copy.ts';
import { bytesOfCopy, DISK_COPY_SETTINGS } from './settings.ts';

export function openDiskCopy({ config, logger, closing }: CopyContext): CopyPart | undefined {
  const { SNAPSHOT_DIR: folder } = settingsOf(config, DISK_COPY_SETTINGS);
  if (folder === undefined) return undefined;
  const { settings } = config;
  const limits = {
    bytes: bytesOfCopy(settings),
    staleLimitMs: settings.STALE_LIMIT * 1000,
    tokenStaleLimitMs: settings.TOKEN_STALE_LIMIT * 1000,
  };
  const copy = closing.use(new DiskCopy({ folder, limits, logger }));
  return { copy, addMetrics: (registry) => copy.health.addMetrics(registry) };
}
