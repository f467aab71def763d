import { text } from '../../config/setting-values.ts';
import { type SettingDefinitions, setting } from '../../config/settings.ts';

export const DISK_COPY_SETTINGS = {
  SNAPSHOT_DIR: {
    ...setting(
      'folder on a local disk for the copy from which readers answer if memory, Redis and PostgreSQL do not; unset: no copy',
      text,
    ),
    isPath: true,
  },
} satisfies SettingDefinitions;

/** Returns the most bytes of the copy: as much as memory, and as much again while files are replaced. */
export const bytesOfCopy = (settings: { readonly MEMORY_LIMIT: number }): number => 2 * settings.MEMORY_LIMIT;
