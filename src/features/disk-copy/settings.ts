import { text } from '../../config/setting-values.ts';
import { type SettingDefinitions, setting } from '../../config/settings.ts';

export const DISK_COPY_SETTINGS = {
  SNAPSHOT_DIR: {
    ...setting(
      'folder on a local disk where readers keep what they serve, and have it when nothing else answers; unset: none',
      text,
    ),
    isPath: true,
  },
} satisfies SettingDefinitions;

/** The most bytes of the copy: as much as memory holds, and as much again while a file is replaced. */
export function bytesOfCopy({ MEMORY_LIMIT }: { readonly MEMORY_LIMIT: number }): number {
  return 2 * MEMORY_LIMIT;
}
