import { execFileSync } from 'node:child_process';
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

export const POSTGRES_USER = 'fleetbook';

/** PostgreSQL's own locale sorts equally on every system. */
const BUILTIN_LOCALE = ['--locale-provider=builtin', '--builtin-locale=C.UTF-8', '--locale=C'];
const FIRST_WITH_BUILTIN = 17;

export interface DataDirectory {
  readonly dataDir: string;
  readonly binaries: PostgresBinaries;
  readonly user: Unprivileged | undefined;
  /** False skips the sync to disk, for tests. */
  readonly durable: boolean;
}

/** Creates a missing data directory. Returns the password of `<dataDir>.password`. @throws Error with the remedy */
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
      `${dataDir} was made by PostgreSQL ${version}, and this release has PostgreSQL ${binaries.major}: ` +
        'move that folder away to start with a new database, or dump it with its own version and restore the dump',
    );
  }
  try {
    return readFileSync(passwordFile, 'utf8').trim();
  } catch (error) {
    throw new Error(
      `cannot read ${passwordFile}: restore it, or move ${dataDir} away to start with a new database`,
      { cause: error },
    );
  }
}

function isInitialized(dataDir: string): boolean {
  if (existsSync(join(dataDir, 'PG_VERSION'))) return true;
  if (existsSync(dataDir) && readdirSync(dataDir).length > 0) {
    throw new Error(
      `${dataDir} is not empty and no PostgreSQL data directory: move it away, or name another folder`,
    );
  }
  return false;
}

/** Creates the directory under another name and renames it, so that an interrupted run leaves no data directory. */
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
      `PostgreSQL's initdb could not create ${dataDir} (${exit.signal ?? `exit ${exit.code}`}):\n${output}`,
    );
  }
  rmSync(dataDir, { recursive: true, force: true });
  renameSync(draft, dataDir);
}

/** Makes the server's user the owner of the directory, which PostgreSQL requires. */
function claim(dataDir: string, user: Unprivileged | undefined): void {
  const owner = statSync(dataDir).uid;
  const wanted = user?.uid ?? process.getuid?.();
  if (wanted === undefined || owner === wanted) return;
  if (!user) {
    throw new Error(
      `${dataDir} belongs to user ${owner}, which happens after a start by root: start as root again, ` +
        `or change the owner with \`sudo chown -R ${wanted} ${dataDir} ${dataDir}.*\``,
    );
  }
  // Root may have copied the directory.
  execFileSync('chown', ['-hR', `${user.uid}:${user.gid}`, dataDir]);
}
