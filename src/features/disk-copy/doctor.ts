import { existsSync } from 'node:fs';
import { access, constants, readdir, stat, statfs } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { type Finding, ok, problem, warning } from '../../cli/doctor/finding.ts';
import { type Configured, settingsOf } from '../../config/settings.ts';
import { messageOf } from '../../domain/errors.ts';
import { copyFolder } from './copy-folder.ts';
import { bytesOfCopy, DISK_COPY_SETTINGS } from './settings.ts';

const CHECK = 'copy on disk';
const REMEDY = 'set SNAPSHOT_DIR to a folder on a local disk that the readers’ user may write to';

export async function checkDiskCopy(config: Configured): Promise<Finding[]> {
  const { SNAPSHOT_DIR: folder } = settingsOf(config, DISK_COPY_SETTINGS);
  if (folder === undefined) return [];
  let nearest = resolve(folder);
  while (!existsSync(nearest)) nearest = dirname(nearest);
  try {
    if (!(await stat(nearest)).isDirectory())
      return [problem(CHECK, `SNAPSHOT_DIR=${folder}: ${nearest} is not a folder`, REMEDY)];
    await access(nearest, constants.W_OK | constants.X_OK);
    const { bavail, bsize } = await statfs(nearest);
    const used = await sizeOf(copyFolder(folder));
    const limit = bytesOfCopy(config.settings);
    return [roomFinding({ folder, exists: nearest === resolve(folder), used, free: bavail * bsize, limit })];
  } catch (error) {
    return [problem(CHECK, `SNAPSHOT_DIR=${folder} cannot be used: ${messageOf(error)}`, REMEDY)];
  }
}

interface Room {
  readonly folder: string;
  readonly exists: boolean;
  /** Bytes: of the copy, free on its disk, and the most that the copy may take. */
  readonly used: number;
  readonly free: number;
  readonly limit: number;
}

export function roomFinding({ folder, exists, used, free, limit }: Room): Finding {
  const found = `${folder} has ${megabytes(used)} of at most ${megabytes(limit)}`;
  if (used + free < limit) {
    const remedy = 'free room on that disk, or lower MEMORY_LIMIT: the copy takes up to twice as much';
    return warning(CHECK, `${found}, and its disk has only ${megabytes(free)} left`, remedy);
  }
  return ok(CHECK, exists ? found : `the first reader creates ${folder}; its disk has room`);
}

const megabytes = (bytes: number): string => `${Math.round(bytes / 1e6)} MB`;

async function sizeOf(folder: string): Promise<number> {
  const names = existsSync(folder) ? await readdir(folder) : [];
  // A reader may remove a file at any time: its size is 0 then.
  const files = await Promise.all(names.map((name) => stat(join(folder, name)).catch(() => undefined)));
  return files.reduce((sum, file) => sum + (file?.size ?? 0), 0);
}
