/** The settings of the environment: name, description, default and parser. */
import { postgresAddress } from '../domain/servers/postgres-address.ts';
import {
  BadSetting,
  cidrs,
  corsOrigins,
  currency,
  directPostgresUrl,
  integer,
  longSecret,
  oneOf,
  origin,
  port,
  postgresUrl,
  processes,
  rates,
  redisUrl,
  text,
} from './setting-values.ts';

export { BadSetting } from './setting-values.ts';

export interface Setting<T> {
  readonly describe: string;
  /** The default as text; undefined if there is none. */
  readonly fallback: string | undefined;
  readonly secret?: boolean;
  readonly needs?: readonly string[];
  /** This setting has no effect without the other one. */
  readonly uselessWithout?: string;
  readonly isPath?: boolean;
  readonly read: (text: string) => T;
}

export type SettingDefinitions = Readonly<Record<string, Setting<unknown>>>;

export function setting<T>(
  describe: string,
  read: (text: string) => T,
  fallback: string,
): Setting<T> & { fallback: string };
export function setting<T>(describe: string, read: (text: string) => T): Setting<T> & { fallback: undefined };
export function setting<T>(describe: string, read: (text: string) => T, fallback?: string): Setting<T> {
  return { describe, read, fallback };
}
/** A setting whose value is never shown. */
export const secret = <T>(describe: string, read: (text: string) => T) => ({
  ...setting(describe, read),
  secret: true,
});

/** The settings of the core. Each feature has its own, see `src/app/features.ts`. */
export const SETTINGS = {
  DATABASE_URL: secret(
    'PostgreSQL; the user owns the schema and may create roles. One host, also for a cluster: see docs/servers.md. `up` without it: embedded',
    postgresUrl,
  ),
  DIRECT_DATABASE_URL: secret(
    'PostgreSQL itself, if DATABASE_URL names a pooler in transaction mode (`pool_mode=transaction`): for locks, temporary tables, COPY and migrations',
    directPostgresUrl,
  ),
  READER_DATABASE_URL: secret('PostgreSQL for `serve`, if the API has its own user or replica', postgresUrl),
  REDIS_URL: secret(
    'Redis for queues and cache; also `redis+cluster://` and `redis+sentinel://`, see docs/servers.md. `up` without it: a private process',
    redisUrl,
  ),
  QUEUE_REDIS_URL: secret('Redis for the queues; must not evict (`maxmemory-policy noeviction`)', redisUrl),
  CACHE_REDIS_URL: secret('Redis for the published documents; may evict', redisUrl),
  HOST: setting('address the API listens on', text, '127.0.0.1'),
  PORT: setting('port the API listens on', port, '3000'),
  API_DOCS: setting('public reference page `/docs` and `/llms.txt`: on or off', oneOf('on', 'off'), 'on'),
  PROCESSES: setting(
    'processes that serve the API on one port; `max`: one for each core. Each has its own memory and connections',
    processes,
    '1',
  ),
  OPS_HOST: setting('address of the operators’ pages', text, '127.0.0.1'),
  OPS_PORT: setting('port of the operators’ pages: console, queues and /metrics', port, '3001'),
  OPS_TOKEN: secret(
    'bearer token or HTTP Basic password of programs that read the operators’ pages, also during an outage of PostgreSQL; at least 32 characters; its role is admin. Without it the pages of `serve` stay closed',
    longSecret,
  ),
  OPS_URL: setting('public address of the operators’ pages, without a path; OpenID Connect needs it', origin),
  LOG_LEVEL: setting(
    'log level. `info` logs one of 1,000 answers below status 400, `debug` logs all',
    oneOf('trace', 'debug', 'info', 'warn', 'error', 'silent'),
    'info',
  ),
  CATALOGUE_CURRENCY: setting(
    'currency of the published prices; a worker that starts with another currency converts all stored prices',
    currency,
    'USD',
  ),
  CATALOGUE_RATES: setting(
    'exchange rates such as EUR:1.0845,GBP:1.27: units of the published currency for one of the other. Workers read rates of further currencies from the European Central Bank, or from a copy of its file at `EXCHANGE_RATES_URL`',
    rates,
  ),
  FLEETBOOK_CONFIG: { ...setting('JSON file that lists sources', text), isPath: true },
  FLEETBOOK_HOME: setting('data folder of `up`: embedded database, sample, tokens', text, '.fleetbook'),
  FLEETBOOK_OPERATOR: setting('operator’s name for commands in the audit log; unset: user@host', text),
  STALE_LIMIT: setting(
    'seconds that a reader serves documents from memory and its dump during an outage of Redis and PostgreSQL',
    integer(0, 604_800, 'seconds'),
    '3600',
  ),
  TOKEN_STALE_LIMIT: setting(
    'seconds that a reader accepts known tokens during an outage of Redis and PostgreSQL',
    integer(0, 86_400, 'seconds'),
    '900',
  ),
  MEMORY_LIMIT: setting(
    'bytes of one reader’s memory for documents, answers and the search index; half of them is a reserve. A dump in `SNAPSHOT_DIR` takes up to a third',
    integer(1_000_000, 9_999_999_999, 'bytes'),
    '256000000',
  ),
  SNAPSHOT_DIR: {
    ...setting(
      'folder on a local disk for a dump of a reader’s memory, from which it answers if it starts while Redis and PostgreSQL are away; unset: no dump',
      text,
    ),
    isPath: true,
  },
  POSTGRES_READS: setting(
    'concurrent reads of a reader from PostgreSQL, at most half of them for one organization; further ones wait, then get 503',
    integer(1, 1_000, 'a count'),
    '16',
  ),
  WRITE_STATEMENT_TIMEOUT: setting(
    'statement timeout (seconds) of `work` and of commands that write; 0: no limit',
    integer(0, 86_400, 'seconds'),
    '900',
  ),
  BLOCKED_LIMIT: setting(
    'seconds after which a watchdog ends a `work` whose event loop is blocked; the service manager starts it again, and a source that blocks it twice within an hour is paused',
    integer(1, 3600, 'seconds'),
    '30',
  ),
  CHANGES_KEPT: setting(
    'days to keep the changes of runs and of `/v1/changes`',
    integer(1, 3_650, 'days'),
    '90',
  ),
  RATE_LIMIT: setting(
    'requests of one token to one process in a minute; further ones get 429, and RateLimit fields state the rest below 10,000. A client that lists a whole catalogue needs a hundredth of the default. 0: no limit',
    integer(0, 1_000_000_000, 'a count'),
    '120000',
  ),
  MAX_CONNECTIONS: setting(
    'open connections to the API of one process; of further ones only a liveness probe is answered. One address may open half of them, unless it is a trusted proxy. Without an accepted token all addresses together have half, and each address a sixteenth of it once others need the places. The limit of streams of `/v1/changes` is half as high. 0: no limit of connections, 5,000 streams',
    integer(0, 1_000_000, 'a count'),
    '10000',
  ),
  MAX_EVENT_LOOP_DELAY: setting(
    'largest event loop delay (milliseconds). Beyond it a process answers from memory only, and other requests get 503. 0: no limit',
    integer(0, 60_000, 'milliseconds'),
    '1000',
  ),
  TRUST_PROXY: setting('addresses of proxies whose X-Forwarded-For is trusted', cidrs),
  CORS_ORIGINS: setting(
    'origins whose pages may read the API in a browser, such as https://app.example.com,https://admin.example.com; *: all. Unset: none',
    corsOrigins,
  ),
} satisfies SettingDefinitions;

type ValuesOf<D extends SettingDefinitions> = {
  readonly [K in keyof D]: ReturnType<D[K]['read']> | (D[K]['fallback'] extends string ? never : undefined);
};

export type Settings = ValuesOf<typeof SETTINGS> & {
  /** All variables. A feature reads its own settings from it, see `settingsOf`. */
  readonly environment: Environment;
};

type Environment = Readonly<Record<string, string | undefined>>;

/** Reads every setting. @throws BadSetting with one line for each problem, without the values of secrets */
export function readSettings(env: Environment, more: SettingDefinitions = {}): Settings {
  const problems: string[] = [];
  const settings = inspectSettings(env, problems);
  valuesOf(more, env, problems);
  if (problems.length > 0) throw new BadSetting(problems.join('\n'));
  return settings;
}

export function inspectSettings(environment: Environment, problems: string[]): Settings {
  return Object.freeze({ ...valuesOf(SETTINGS, environment, problems), environment });
}

/** Returns the settings of a feature. @throws BadSetting as `readSettings` */
export function settingsOf<const D extends SettingDefinitions>(
  { settings }: Configured,
  definitions: D,
): ValuesOf<D> {
  const problems: string[] = [];
  const values = valuesOf(definitions, settings.environment, problems);
  if (problems.length > 0) throw new BadSetting(problems.join('\n'));
  return values;
}

/** Returns values. A wrong one gets its default and a line in `problems`. */
export function valuesOf<const D extends SettingDefinitions>(
  definitions: D,
  environment: Environment,
  problems: string[],
): ValuesOf<D> {
  const result: Record<string, unknown> = {};
  for (const [name, definition] of Object.entries<Setting<unknown>>(definitions)) {
    const given = environment[name];
    const value = given === undefined || given === '' ? definition.fallback : given;
    try {
      result[name] = value === undefined ? undefined : definition.read(value);
    } catch (error) {
      if (!(error instanceof BadSetting)) throw error;
      result[name] = definition.fallback === undefined ? undefined : definition.read(definition.fallback);
      problems.push(`${name} ${error.message}${definition.secret ? '' : `; it is ${JSON.stringify(given)}`}`);
    }
    if (!given) continue;
    for (const other of definition.needs ?? [])
      if (!environment[other]) problems.push(`${other} is not set; ${name} needs it`);
    const { uselessWithout: main } = definition;
    if (main !== undefined && !environment[main])
      problems.push(`${name} has no effect without ${main}; set both`);
  }
  return result as ValuesOf<D>;
}

export interface Configured {
  readonly settings: Settings;
}

export function databaseUrl({ settings }: Configured): string {
  if (settings.DATABASE_URL) return settings.DATABASE_URL;
  throw new BadSetting(
    'DATABASE_URL is not set; give postgres://user:password@host/database, or use `fleetbook up`, which starts its own',
  );
}

/** Returns the address and the direct address. @throws BadSetting if only a pooler in transaction mode is configured */
export function databaseUrls(config: Configured): { readonly url: string; readonly directUrl: string } {
  const url = databaseUrl(config);
  const { DIRECT_DATABASE_URL: directUrl } = config.settings;
  if (directUrl === undefined && postgresAddress(url).isPooled)
    throw new BadSetting(
      'DIRECT_DATABASE_URL is not set, and DATABASE_URL names a pooler in transaction mode (pool_mode=transaction); give the address of the server itself, for locks, temporary tables, COPY and migrations',
    );
  return { url, directUrl: directUrl ?? url };
}
