import type { Logger } from 'pino';

/** Settings of earlier releases: name → replacement. */
const REMOVED: Readonly<Record<string, string>> = {
  COMPARE_EVERY: 'workers compare the cache with PostgreSQL every 5 seconds',
  COMPARE_DOCUMENTS: 'each comparison takes all versions, and the content of one document in 500',
  EXPORT_DOWNLOADS: 'each process serves 16 downloads at once',
  OPS_SESSION_IDLE: 'a session ends after an hour without a request',
  OPS_SESSION_KEY: 'sessions need no key',
  OPS_SESSION_LIFETIME: 'a session ends after 12 hours',
  LOG_SUCCESSES: 'one answer of 1,000 below status 400 is logged, and every answer with LOG_LEVEL=debug',
  REPLICA_LAG_LIMIT: 'readers read from the primary each document of which the replica has an older version',
  SNAPSHOT_DIR_LIMIT: 'the copy on disk takes at most twice MEMORY_LIMIT',
  STREAMS_LIMIT: 'a process holds half as many streams as MAX_CONNECTIONS allows connections',
  UNKNOWN_TOKENS: 'each process looks up 100 unknown tokens a second',
  UNKNOWN_TOKENS_PER_ADDRESS: 'each process looks up 10 unknown tokens a second of one address',
};

export function removedSettings(env: Readonly<Record<string, string | undefined>>): string[] {
  return Object.entries(REMOVED)
    .filter(([name]) => env[name])
    .map(([name, instead]) => `${name} is no longer a setting: ${instead}`);
}

export function warnOfRemovedSettings(
  env: Readonly<Record<string, string | undefined>>,
  logger: Pick<Logger, 'warn'>,
): void {
  for (const line of removedSettings(env)) logger.warn(line);
}
