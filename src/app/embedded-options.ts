/** What a host says of the reader that it embeds, as the settings that `serve` has. */
import type { FastifyBaseLogger } from 'fastify';
import { BadSetting, readSettings, type Settings } from '../config/settings.ts';
import { ALL_SETTINGS } from './feature-settings.ts';

/** How much an embedded reader may take and how old its answers may be. What is left out is as in `serve`. */
export interface ReaderLimits {
  /** Seconds for which memory, and what is in `snapshotDir`, answers when nothing else does. */
  readonly staleSeconds?: number;
  /** Seconds for which known tokens are accepted when they cannot be checked. */
  readonly tokenStaleSeconds?: number;
  /** Bytes by which what the reader keeps may enlarge the process; in `snapshotDir` it keeps at most twice as many. */
  readonly memoryBytes?: number;
  /** Reads that may fall back to PostgreSQL at the same time; beyond: 503. */
  readonly postgresReads?: number;
  /** Requests a minute that one token may make of this process; 0, or left out: no limit. Beyond: 429. */
  readonly requestsPerMinute?: number;
  /** Milliseconds by which the event loop may be late before requests that would wait are refused; 0: no limit. */
  readonly eventLoopDelayMs?: number;
}

export interface ReaderOptions {
  /** `postgres://…`, as DATABASE_URL. */
  readonly databaseUrl: string;
  /** A user or a replica of the reader's own, as READER_DATABASE_URL. */
  readonly readerDatabaseUrl?: string;
  /** `redis://…`, as CACHE_REDIS_URL: where workers publish to. */
  readonly cacheRedisUrl: string;
  /** A folder on a local disk for the reader's copy, as SNAPSHOT_DIR. */
  readonly snapshotDir?: string;
  readonly limits?: ReaderLimits;
  /** Addresses and CIDR blocks of proxies whose `X-Forwarded-For` is believed. The host's own setting does not count. */
  readonly trustProxy?: readonly string[];
  /** Origins whose pages may read the answers in a browser, as CORS_ORIGINS; none unless given. */
  readonly corsOrigins?: '*' | readonly string[];
  /** Where the reader tells of trouble and of requests, e.g. the host's `app.log`; nowhere unless given. */
  readonly logger?: FastifyBaseLogger | false;
  /** Whether `/docs` and `/llms.txt` are the reader's, too; true unless given. */
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

/**
 * The settings of `serve` that these options stand for. The environment is not read.
 * @throws TypeError that names every option that is missing, unknown or wrong, and what would do; no value of one
 */
export function settingsOf(options: ReaderOptions): Settings {
  const problems: string[] = [];
  const given: Record<string, string> = {};
  for (const name of REQUIRED) if (!options[name]) problems.push(`${name} is missing`);
  const { limits = {}, logger: _, docs = true, ...others } = options;
  given.API_DOCS = docs ? 'on' : 'off';
  take(others, OPTIONS, '', given, problems);
  take(limits, LIMITS, 'limits.', given, problems);
  if (problems.length > 0) throw new TypeError(`createReader: ${problems.join('; ')}`);
  return readSettings(given);
}

/** Reads each option as its setting is read. */
function take(
  options: object,
  names: Readonly<Record<string, string>>,
  place: string,
  given: Record<string, string>,
  problems: string[],
): void {
  for (const [name, value] of Object.entries(options)) {
    const setting = Object.hasOwn(names, name) ? names[name] : undefined;
    if (setting === undefined) {
      problems.push(`${place}${name} is no option; there are ${Object.keys(names).join(', ')}`);
      continue;
    }
    // As a setting that is empty: it stands for its default.
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
