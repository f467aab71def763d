import { readFileSync } from 'node:fs';

/** Ticks a second of the clock in /proc: the same on every Linux that Node runs on. */
const TICKS_A_SECOND = 100;

/** Returns seconds of CPU time, user and system, of a process; NaN outside of Linux. */
export function cpuSeconds(pid: number): number {
  const fields = procFile(pid, 'stat')
    ?.replace(/^.*\) /, '')
    .split(' ');
  return (Number(fields?.[11]) + Number(fields?.[12])) / TICKS_A_SECOND;
}

/** Returns bytes of memory of a process; NaN outside of Linux. */
export function residentBytes(pid: number): number {
  const [, kib] = /^VmRSS:\s+(\d+) kB$/m.exec(procFile(pid, 'status') ?? '') ?? [];
  return Number(kib) * 1024;
}

function procFile(pid: number, name: string): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/${name}`, 'utf8');
  } catch {
    return undefined;
  }
}
