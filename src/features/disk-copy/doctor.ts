import { access, constants, readdir, stat, statfs } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { type Finding, ok, problem, warning } from '../../cli/doctor/finding.ts';
import { type Configured, settingsOf } from '../../config/settings.ts';
import { messageOf } from '../../domain/servers/driver-error.ts';
import { copyFolder } from './copy-folder.ts';
import { bytesOfCopy, DISK_COPY_SETTINGS } from './settings.ts';

const CHECK = 'copy on disk';
const REMEDY = 'make SNAPSHOT_DIR a folder on a local disk that the readers’ user may write to';

/** Whether a reader on this machine could keep its copy in SNAPSHOT_DIR. Nothing is made there. */
export async function checkDiskCopy(config: Configured): Promise<Finding[]> {
  const { SNAPSHOT_DIR: folder } = settingsOf(config, DISK_COPY_SETTINGS);
  if (folder === undefined) return [];
  const limit = bytesOfCopy(config.settings);
  const nearest = await nearestThere(resolve(folder));
  try {
    if (!(await stat(nearest)).isDirectory())
      return [problem(CHECK, `${nearest} of SNAPSHOT_DIR is no folder`, REMEDY)];
    await access(nearest, constants.W_OK | constants.X_OK);
    const { bavail, bsize } = await statfs(nearest);
    const used = await sizeOf(copyFolder(folder));
    const isThere = nearest === resolve(folder);
    return [roomFinding({ folder, isThere, used, free: bavail * bsize, limit })];
  } catch (error) {
    return [problem(CHECK, `SNAPSHOT_DIR=${folder} cannot be used: ${messageOf(error)}`, REMEDY)];
  }
}

interface Room {
  readonly folder: string;
  readonly isThere: boolean;
  /** Bytes that the copy takes, that are free beside it, and that it may take. */
  readonly used: number;
  readonly free: number;
  readonly limit: number;
}

export function roomFinding({ folder, isThere, used, free, limit }: Room): Finding {
  const found = `${folder} has ${megabytes(used)} of at most ${megabytes(limit)}`;
  if (used + free < limit) {
    const mend = 'free room on that disk, or lower MEMORY_LIMIT, of which it takes twice as much';
    return warning(CHECK, `${found}, and its disk has only ${megabytes(free)} left`, mend);
  }
  return ok(CHECK, isThere ? found : `${folder} is made by the first reader; its disk has room`);
}

const megabytes = (bytes: number): string => `${Math.round(bytes / 1e6)} MB`;

/** The folder, or the innermost of those above it that exists. */
async function nearestThere(folder: string): Promise<string> {
  for (let at = folder; ; at = dirname(at)) {
    const found = await stat(at).catch((error: NodeJS.ErrnoException) => error);
    if (!(found instanceof Error) || found.code !== 'ENOENT' || at === dirname(at)) return at;
  }
}

async function sizeOf(folder: string): Promise<number> {
  const names = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
  const sizes = await Promise.all(
    // A file that is removed meanwhile takes nothing.
    names.map((name) =>
      stat(join(folder, name)).then(
        ({ size }) => size,
        () => 0,
      ),
    ),
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}
