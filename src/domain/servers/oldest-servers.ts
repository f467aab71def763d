/** The oldest supported servers. The tests run on them, and every process checks them at its start. */

/** Major version. The schema needs its `nulls not distinct`. */
export const OLDEST_POSTGRES = 15;
/** Every Valkey is newer. */
export const OLDEST_REDIS = '7.0';

export function isAtLeast(version: string, oldest: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const [oldestMajor = 0, oldestMinor = 0] = oldest.split('.').map(Number);
  return major > oldestMajor || (major === oldestMajor && minor >= oldestMinor);
}
