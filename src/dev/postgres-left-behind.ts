import { execFileSync } from 'node:child_process';
import { readlinkSync, realpathSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { readIfThere } from './lock.ts';
import { identify, isAlive, type ProcessIdentity } from './process-identity.ts';

/** Steps to stop PostgreSQL: fast shutdown, immediate shutdown, kill. */
export const STOP_POSTGRES = [
  { signal: 'SIGINT', ms: 15_000 },
  { signal: 'SIGQUIT', ms: 5_000 },
  { signal: 'SIGKILL', ms: 5_000 },
] as const;

/**
 * Releases the data directory. It stops the server of a killed Fleetbook process, and removes a stale `postmaster.pid`, which
 * would stop PostgreSQL from starting.
 * @param ours true if the last Fleetbook process died without stopping its server
 * @throws Error if a server that Fleetbook did not start uses the directory
 */
export async function stopLeftBehind(dataDir: string, ours: boolean): Promise<void> {
  const pidFile = join(dataDir, 'postmaster.pid');
  const pid = recordedPid(pidFile);
  if (pid === undefined) return;
  const server = identify(pid);
  if (server && serves(pid, dataDir)) {
    if (!ours) {
      throw new Error(
        `PostgreSQL process ${pid}, which fleetbook did not start, uses ${dataDir}: stop it first`,
      );
    }
    await stop(server, dataDir);
  }
  rmSync(pidFile, { force: true });
}

function recordedPid(pidFile: string): number | undefined {
  const pid = Number.parseInt(readIfThere(pidFile) ?? '', 10);
  return pid > 0 ? pid : undefined;
}

/** A postmaster's working directory is its data directory. */
function serves(pid: number, dataDir: string): boolean {
  try {
    if (process.platform === 'linux') return readlinkSync(`/proc/${pid}/cwd`) === realpathSync(dataDir);
    return execFileSync('ps', ['-o', 'args=', '-p', String(pid)], { encoding: 'utf8' }).includes(
      `-D ${dataDir}`,
    );
  } catch {
    return false;
  }
}

async function stop(server: ProcessIdentity, dataDir: string): Promise<void> {
  for (const { signal, ms } of STOP_POSTGRES) {
    try {
      process.kill(server.pid, signal);
    } catch {
      return;
    }
    for (const until = Date.now() + ms; Date.now() < until; await sleep(20)) {
      if (!isAlive(server)) return;
    }
  }
  throw new Error(`PostgreSQL process ${server.pid} still uses ${dataDir} and does not stop`);
}
