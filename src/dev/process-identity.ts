import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** One process and no later one that is given the same number. */
export interface ProcessIdentity {
  readonly pid: number;
  /** When it started, in the system's own words; differs between two processes that share a pid, also across boots. */
  readonly started: string;
}

/** Who has this pid now; undefined when nobody has, or only a zombie that was not yet reaped. */
export function identify(pid: number): ProcessIdentity | undefined {
  const started = process.platform === 'linux' ? startedOnLinux(pid) : startedByPs(pid);
  return started === undefined ? undefined : { pid, started };
}

/** True while that very process runs. */
export function isAlive(identity: ProcessIdentity): boolean {
  return identify(identity.pid)?.started === identity.started;
}

function startedOnLinux(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // The command's name is in parentheses and may hold spaces and parentheses; state is the field that follows it.
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
