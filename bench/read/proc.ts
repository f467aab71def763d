import { readFileSync } from 'node:fs';

/** Of the clock that /proc counts in: the same on every Linux that Node runs on. */
const TICKS_A_SECOND = 100;

/** Seconds of CPU time, user and system, that a process has had; NaN where the system does not tell in Linux's way. */
export function cpuSeconds(pid: number): number {
  const fields = procFile(pid, 'stat')
    ?.replace(/^.*\) /, '')
    .split(' ');
  return (Number(fields?.[11]) + Number(fields?.[12])) / TICKS_A_SECOND;
}

/** Bytes of memory that a process has; NaN likewise. */
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
