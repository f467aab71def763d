/** The oldest servers that are supported: the tests run on them, and a start on an older one says what to do. */

/** A major version. Indexes that take nulls for equal, which the schema has, came with it. */
export const OLDEST_POSTGRES = 15;
/** Every Valkey is younger. */
export const OLDEST_REDIS = '7.0';

/** Whether a version, e.g. `7.0.15`, is at least another one. */
export function isAtLeast(version: string, oldest: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const [oldestMajor = 0, oldestMinor = 0] = oldest.split('.').map(Number);
  return major > oldestMajor || (major === oldestMajor && minor >= oldestMinor);
}
