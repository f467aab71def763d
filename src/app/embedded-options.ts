import type { FastifyBaseLogger } from 'fastify';
import { BadSetting, readSettings, type Settings } from '../config/settings.ts';
import { ALL_SETTINGS } from './features.ts';

/** Limits of an embedded reader. Each has the default of `serve`. */
export interface ReaderLimits {
  /** Seconds for which memory and `snapshotDir` answer when PostgreSQL and Redis cannot. */
  readonly staleSeconds?: number;
  /** Seconds for which known tokens stay accepted when they cannot be checked. */
  readonly tokenStaleSeconds?: number;
  /** Bytes of memory for cached data; the file in `snapshotDir` has at most as many. */
  readonly memoryBytes?: number;
  /** Concurrent reads from PostgreSQL; a further one is answered with 503. */
  readonly postgresReads?: number;
  /** Requests a minute of one token in this process, 0 for no limit; a further one is answered with 429. */
  readonly requestsPerMinute?: number;
  /** Largest event loop delay in milliseconds, 0 for no limit; above it, uncached requests are answered with 503. */
  readonly eventLoopDelayMs?: number;
}

export interface ReaderOptions {
  /** `postgres://…`, as DATABASE_URL. */
  readonly databaseUrl: string;
  /** Another user, or a replica, for the reader, as READER_DATABASE_URL. */
  readonly readerDatabaseUrl?: string;
  /** `redis://…`, as CACHE_REDIS_URL: workers publish to it. */
  readonly cacheRedisUrl: string;
  /** A folder on a local disk for the dump of this reader alone, as SNAPSHOT_DIR. */
  readonly snapshotDir?: string;
  readonly limits?: ReaderLimits;
  /** Addresses and CIDR blocks of proxies whose `X-Forwarded-For` is trusted. The host's setting has no effect. */
  readonly trustProxy?: readonly string[];
  /** Origins whose pages may read answers in a browser, as CORS_ORIGINS; none by default. */
  readonly corsOrigins?: '*' | readonly string[];
  /** Receives log lines about problems and requests, e.g. the host's `app.log`; no log by default. */
  readonly logger?: FastifyBaseLogger | false;
  /** Whether the reader serves `/docs` and `/llms.txt`; true by default. */
  readonly docs?: boolean;
}

const OPTIONS: Readonly<Record<Exclude<keyof ReaderOptions, 'limits' | 'logger' | 'docs'>, string>> = {
  databaseUrl: 'DATABASE_URL',
  readerDatabaseUrl: 'READER_DATABASE_URL',
  cacheRedisUrl: 'CACHE_REDIS_URL',
  snapshotDir: 'SNAPSHOT_DIR',
  trustProxy: 'TRUST_PROXY',
  corsOrigins: 'CORS_ORIGINS',
};

const LIMITS: Readonly<Record<keyof ReaderLimits, string>> = {
  staleSeconds: 'STALE_LIMIT',
  tokenStaleSeconds: 'TOKEN_STALE_LIMIT',
  memoryBytes: 'MEMORY_LIMIT',
  postgresReads: 'POSTGRES_READS',
  requestsPerMinute: 'RATE_LIMIT',
  eventLoopDelayMs: 'MAX_EVENT_LOOP_DELAY',
};

const REQUIRED = ['databaseUrl', 'cacheRedisUrl'] as const;

/** @throws TypeError that names every missing, unknown or wrong option; it contains no value */
export function settingsOf(options: ReaderOptions): Settings {
  const problems: string[] = [];
  const given: Record<string, string> = {};
  for (const name of REQUIRED) if (!options[name]) problems.push(`${name} is missing`);
  const { limits = {}, logger: _, docs = true, ...others } = options;
  given.API_DOCS = docs ? 'on' : 'off';
  addSettings(others, OPTIONS, '', given, problems);
  addSettings(limits, LIMITS, 'limits.', given, problems);
  if (problems.length > 0) throw new TypeError(`createReader: ${problems.join('; ')}`);
  return readSettings(given);
}

function addSettings(
  options: object,
  names: Readonly<Record<string, string>>,
  place: string,
  given: Record<string, string>,
  problems: string[],
): void {
  for (const [name, value] of Object.entries(options)) {
    const setting = Object.hasOwn(names, name) ? names[name] : undefined;
    if (setting === undefined) {
      problems.push(`${place}${name} is not an option; options are ${Object.keys(names).join(', ')}`);
      continue;
    }
    // An empty setting has its default.
    if (value === undefined || value === '') continue;
    try {
      ALL_SETTINGS[setting]?.read(String(value));
      given[setting] = String(value);
    } catch (error) {
      if (!(error instanceof BadSetting)) throw error;
      problems.push(`${place}${name} ${error.message}`);
    }
  }
}
