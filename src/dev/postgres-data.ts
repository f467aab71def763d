import { randomBytes } from 'node:crypto';
import {
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { startServerProcess } from '../processes/server-process.ts';
import type { PostgresBinaries } from './postgres-binaries.ts';
import type { Unprivileged } from './unprivileged.ts';

/** The superuser of an embedded server. */
export const POSTGRES_USER = 'fleetbook';

/** The embedded PostgreSQL brings this locale itself: it sorts alike on every system. */
const BUILTIN_LOCALE = ['--locale-provider=builtin', '--builtin-locale=C.UTF-8', '--locale=C'];
/** The first release with a built-in locale. */
const FIRST_WITH_BUILTIN = 17;

export interface DataDirectory {
  readonly dataDir: string;
  readonly binaries: PostgresBinaries;
  readonly user: Unprivileged | undefined;
  /** Whether a power failure right after may lose it. */
  readonly durable: boolean;
}

/**
 * The superuser's password, after making the data directory where there is none yet. It is kept beside the directory,
 * in `<dataDir>.password`, since what lies inside is PostgreSQL's own.
 * @throws Error that names the remedy when the directory is something else, of another major version or another user's.
 */
export async function openDataDirectory(data: DataDirectory): Promise<string> {
  const { dataDir, binaries, user } = data;
  const passwordFile = `${dataDir}.password`;
  if (existsSync(dataDir)) claim(dataDir, user);
  if (!isInitialized(dataDir)) {
    const password = randomBytes(24).toString('base64url');
    writeFileSync(passwordFile, `${password}\n`, { mode: 0o600 });
    if (user) chownSync(passwordFile, user.uid, user.gid);
    await initialize(data, passwordFile);
    return password;
  }
  const version = readFileSync(join(dataDir, 'PG_VERSION'), 'utf8').trim();
  if (version !== String(binaries.major)) {
    throw new Error(
      `${dataDir} was made by PostgreSQL ${version}, and this release brings PostgreSQL ${binaries.major}: ` +
        'move that folder away to start anew, or dump it with its own version and restore the dump',
    );
  }
  try {
    return readFileSync(passwordFile, 'utf8').trim();
  } catch (error) {
    throw new Error(`cannot read ${passwordFile}: put it back, or move ${dataDir} away to start anew`, {
      cause: error,
    });
  }
}

/** @throws Error when the folder holds something that is no data directory. */
function isInitialized(dataDir: string): boolean {
  if (existsSync(join(dataDir, 'PG_VERSION'))) return true;
  if (existsSync(dataDir) && readdirSync(dataDir).length > 0) {
    throw new Error(
      `${dataDir} is not empty and no PostgreSQL data directory: move it away, or name another folder`,
    );
  }
  return false;
}

/** Made under another name and moved into place whole: one that was cut short is never taken for a good one. */
async function initialize(data: DataDirectory, passwordFile: string): Promise<void> {
  const { dataDir, binaries, user, durable } = data;
  const draft = `${dataDir}.new`;
  rmSync(draft, { recursive: true, force: true });
  mkdirSync(draft, { mode: 0o700 });
  if (user) chownSync(draft, user.uid, user.gid);
  const initdb = await startServerProcess({
    command: binaries.initdb,
    args: [
      `--pgdata=${draft}`,
      `--username=${POSTGRES_USER}`,
      `--pwfile=${passwordFile}`,
      '--auth=scram-sha-256',
      '--encoding=UTF8',
      ...(binaries.major >= FIRST_WITH_BUILTIN ? BUILTIN_LOCALE : ['--locale=C.UTF-8']),
      '--no-instructions',
      ...(durable ? [] : ['--no-sync']),
    ],
    cwd: '/',
    whenParentDies: 'SIGTERM',
    ...(user ? { privileges: user.privileges } : {}),
  });
  const exit = await initdb.exited;
  if (exit.code !== 0) {
    const output = await initdb.lastLines();
    rmSync(draft, { recursive: true, force: true });
    throw new Error(
      `PostgreSQL's initdb could not make ${dataDir} (${exit.signal ?? `exit ${exit.code}`}):\n${output}`,
    );
  }
  rmSync(dataDir, { recursive: true, force: true });
  renameSync(draft, dataDir);
}

/** PostgreSQL insists that its directory is its user's own. */
function claim(dataDir: string, user: Unprivileged | undefined): void {
  const owner = statSync(dataDir).uid;
  const wanted = user?.uid ?? process.getuid?.();
  if (wanted === undefined || owner === wanted) return;
  if (!user) {
    throw new Error(
      `${dataDir} belongs to user ${owner}, as a start by root leaves it: start as root again, ` +
        `or hand it over with \`sudo chown -R ${wanted} ${dataDir} ${dataDir}.*\``,
    );
  }
  // A copy that root made.
  chownTree(dataDir, user);
}

function chownTree(folder: string, user: Unprivileged): void {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) chownTree(path, user);
    else if (entry.isFile()) chownSync(path, user.uid, user.gid);
  }
  chownSync(folder, user.uid, user.gid);
}
