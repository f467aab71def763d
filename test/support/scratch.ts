/** Where tests put their files: into memory where there is room for them, since databases come and go by the hundred. */
import { accessSync, constants } from 'node:fs';
import { chmod, mkdtemp, rm, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Linux keeps what lies here in memory. */
const MEMORY = '/dev/shm';
/** A run takes about 2 GB at most; containers often have 64 MB. */
const BYTES_NEEDED = 6e9;

/** A folder for the temporary files of a run: with all that is in it, disposing removes it. */
export async function scratchFolder(): Promise<{ readonly path: string } & AsyncDisposable> {
  const path = await mkdtemp(join((await hasRoom(MEMORY)) ? MEMORY : tmpdir(), 'fleetbook-run-'));
  // As with the usual one, other users' programs pass through it to what is theirs.
  await chmod(path, 0o755);
  return {
    path,
    [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true, maxRetries: 3 }),
  };
}

/** Whoever names a folder of their own gets that one. */
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
