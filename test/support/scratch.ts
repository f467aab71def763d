/** The folder of the tests' files: in memory if there is room, since tests create and drop hundreds of databases. */
import { accessSync, constants } from 'node:fs';
import { chmod, mkdtemp, rm, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Linux stores this folder in memory. */
const MEMORY = '/dev/shm';
/** A run needs at most about 2 GB; containers often have 64 MB. */
const BYTES_NEEDED = 6e9;

/** Creates a folder for temporary files of a run; disposing removes it with its contents. */
export async function scratchFolder(): Promise<{ readonly path: string } & AsyncDisposable> {
  const path = await mkdtemp(join((await hasRoom(MEMORY)) ? MEMORY : tmpdir(), 'fleetbook-run-'));
  // Readable like the usual folder: other users' programs pass through it to their files.
  await chmod(path, 0o755);
  return {
    path,
    [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true, maxRetries: 3 }),
  };
}

/** A folder that the user names has priority. */
async function hasRoom(folder: string): Promise<boolean> {
  if (process.env.TMPDIR) return false;
  try {
    accessSync(folder, constants.W_OK);
    const { bavail, bsize } = await statfs(folder);
    return bavail * bsize >= BYTES_NEEDED;
  } catch {
    return false;
  }
}
