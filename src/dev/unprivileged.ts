import { execFileSync, spawnSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { dirname } from 'node:path';
import { findSetpriv } from '../processes/server-process.ts';

/** The user of a server that root starts, because PostgreSQL does not run as root. */
export interface Unprivileged {
  readonly uid: number;
  readonly gid: number;
  readonly privileges: readonly string[];
}

export interface Needs {
  /** Data directory of the server. Its owner is the user, unless the owner is root. */
  readonly dataDir: string;
  /** Programs that it must be able to run, and files that it must be able to read. */
  readonly runs: readonly string[];
  readonly reads: readonly string[];
}

/**
 * Returns a user for the server; undefined if this process is not root.
 *
 * Other users cannot read a clone below /root (mode 0700). The server then gets one capability: to read regardless of
 * permissions or, for closed files (umask 077), to ignore permissions. PostgreSQL checks its binaries with access(2), which
 * uses capabilities of other users only with the securebit no_setuid_fixup.
 * @throws Error with the remedy if there is no such user, or it cannot reach the files
 */
export function unprivileged(needs: Needs): Unprivileged | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const setpriv = findSetpriv();
  const user = ownerOf(needs.dataDir) ?? idsOf('postgres') ?? idsOf('nobody');
  if (setpriv === undefined || user === undefined) {
    throw new Error(
      `PostgreSQL does not run as root, and this system has no ${setpriv === undefined ? 'setpriv' : 'user postgres or nobody'}; ` +
        'start as another user, or give DATABASE_URL',
    );
  }
  const identity = [`--reuid=${user.uid}`, `--regid=${user.gid}`, '--clear-groups'];
  for (const capabilities of [['--inh-caps=-all'], withOnly('dac_read_search'), withOnly('dac_override')]) {
    const privileges = [...identity, ...capabilities];
    if (canReach(setpriv, privileges, needs)) return { ...user, privileges };
  }
  throw new Error(
    `PostgreSQL does not run as root, and user ${user.uid} cannot run ${needs.runs[0]} or enter ${dirname(needs.dataDir)}; ` +
      'put the folder where others can read it, start as another user, or give DATABASE_URL',
  );
}

const withOnly = (capability: string): string[] => [
  `--inh-caps=+${capability}`,
  `--ambient-caps=+${capability}`,
  '--securebits=+no_setuid_fixup',
];

function canReach(setpriv: string, privileges: readonly string[], needs: Needs): boolean {
  const runs = ['-x', dirname(needs.dataDir), ...needs.runs.flatMap((file) => ['-x', file, '-r', file])];
  const tests = [...runs, ...needs.reads.flatMap((file) => ['-r', file])];
  const script = 'while [ $# -gt 0 ]; do test "$1" "$2" || exit 1; shift 2; done';
  const args = [...privileges, '--', '/bin/sh', '-c', script, 'sh', ...tests];
  return spawnSync(setpriv, args, { stdio: 'ignore', cwd: '/' }).status === 0;
}

function ownerOf(dataDir: string): { uid: number; gid: number } | undefined {
  const found = statSync(dataDir, { throwIfNoEntry: false });
  return found === undefined || found.uid === 0 ? undefined : { uid: found.uid, gid: found.gid };
}

function idsOf(user: string): { uid: number; gid: number } | undefined {
  try {
    const id = (option: string) =>
      Number(execFileSync('id', [option, user], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }));
    return { uid: id('-u'), gid: id('-g') };
  } catch {
    return undefined;
  }
}
