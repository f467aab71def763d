/**
 * Returns microseconds of CPU time of this thread: a busy machine does not change them. Linux counts the time since the last tick of
 * its timer only when the time of the process is read.
 */
export function threadCpu(): number {
  process.cpuUsage();
  const { user, system } = process.threadCpuUsage();
  return user + system;
}
