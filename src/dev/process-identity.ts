import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** Identifies a process, even if a later one gets the same pid. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Start time as the system's text. It includes the boot. */
  readonly started: string;
}

/** Returns the process with this pid; undefined for none, and for a zombie. */
export function identify(pid: number): ProcessIdentity | undefined {
  const started = process.platform === 'linux' ? startedOnLinux(pid) : startedByPs(pid);
  return started === undefined ? undefined : { pid, started };
}

export function isAlive(identity: ProcessIdentity): boolean {
  return identify(identity.pid)?.started === identity.started;
}

function startedOnLinux(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // The command's name is in parentheses and may contain spaces and parentheses. The state follows it.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const [state, ticks] = [fields[0], fields[19]];
    if (state === 'Z' || state === 'X' || ticks === undefined) return undefined;
    return `${readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim()} ${ticks}`;
  } catch {
    return undefined;
  }
}

function startedByPs(pid: number): string | undefined {
  try {
    const shown = execFileSync('ps', ['-o', 'stat=,lstart=', '-p', String(pid)], {
      encoding: 'utf8',
      env: { ...process.env, LC_ALL: 'C' },
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim();
    return shown === '' || shown.startsWith('Z') ? undefined : shown.slice(shown.indexOf(' ') + 1).trim();
  } catch {
    return undefined;
  }
}
