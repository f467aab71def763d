/** The settings that the environment can give: name, meaning, default, and how a value is read. */
import { postgresAddress } from '../lib/postgres-address.ts';
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
  readerPostgresUrl,
  redisUrl,
  text,
} from './setting-values.ts';

export { BadSetting } from './setting-values.ts';

export interface Setting<T> {
  readonly describe: string;
  /** As the documentation shows it; undefined where unset means "none". */
  readonly fallback: string | undefined;
  readonly secret?: boolean;
  /** Other settings that must be given with this one. */
  readonly needs?: readonly string[];
  /** The setting without which this one has no effect. */
  readonly uselessWithout?: string;
  /** The value is a path, relative to the folder of the process. */
  readonly isPath?: boolean;
  readonly read: (text: string) => T;
}

/** Settings by their names. */
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
/** Marks a setting whose value is never shown. */
export const secret = <S extends Setting<unknown>>(inner: S): S => ({ ...inner, secret: true });

/** The settings of the core. Each feature has its own, see `src/app/feature-settings.ts`. */
export const SETTINGS = {
  DATABASE_URL: secret(
    setting(
      'PostgreSQL; the user owns the schema and may create roles. Several hosts: see docs/postgres.md. `up` without it: embedded',
      postgresUrl,
    ),
  ),
  DIRECT_DATABASE_URL: secret(
    setting(
      'PostgreSQL itself, where DATABASE_URL names a pooler in transaction mode (`pool_mode=transaction`): for what needs a session',
      directPostgresUrl,
    ),
  ),
  READER_DATABASE_URL: secret(
    setting('PostgreSQL for `serve`, when the API has a user or a replica of its own', readerPostgresUrl),
  ),
  REDIS_URL: secret(
    setting(
      'Redis for queues and cache alike; also `redis+cluster://` and `redis+sentinel://`, see docs/redis.md. `up` without it: a private process',
      redisUrl,
    ),
  ),
  QUEUE_REDIS_URL: secret(
    setting('Redis for the queues; must not evict (`maxmemory-policy noeviction`)', redisUrl),
  ),
  CACHE_REDIS_URL: secret(setting('Redis for the published snapshots; may evict', redisUrl)),
  HOST: setting('address the API listens on', text, '127.0.0.1'),
  PORT: setting('port the API listens on', port, '3000'),
  API_DOCS: setting(
    'whether the API’s reference page `/docs` and `/llms.txt` are served, to everybody: on or off',
    oneOf('on', 'off'),
    'on',
  ),
  PROCESSES: setting(
    'processes that serve the API, on one port; `max`: one for each core. Each has memory and connections of its own',
    processes,
    '1',
  ),
  OPS_HOST: setting('address of the operators’ pages', text, '127.0.0.1'),
  OPS_PORT: setting('port of the operators’ pages: console, queues and /metrics', port, '3001'),
  OPS_TOKEN: secret(
    setting(
      'bearer token, or password of HTTP Basic, of programs that read the operators’ pages, also while PostgreSQL is away; at least 32 characters; its role is admin. Without it the pages of `serve` stay closed',
      longSecret,
    ),
  ),
  OPS_URL: setting(
    'address by which browsers reach the operators’ pages, without a path; OpenID Connect needs it',
    origin,
  ),
  LOG_LEVEL: setting(
    'how much is logged. `info` logs one of 1,000 answers below status 400, `debug` logs all',
    oneOf('trace', 'debug', 'info', 'warn', 'error', 'silent'),
    'info',
  ),
  CATALOGUE_CURRENCY: setting(
    'currency of the published prices; a worker that starts with another one converts all that are stored',
    currency,
    'USD',
  ),
  CATALOGUE_RATES: setting(
    'exchange rates such as EUR:1.0845,GBP:1.27, units of the published currency for one of the other; for other currencies workers read the European Central Bank, or a copy of its file at `EXCHANGE_RATES_URL`',
    rates,
  ),
  FLEETBOOK_CONFIG: { ...setting('JSON file that lists sources', text), isPath: true },
  FLEETBOOK_HOME: setting('folder of what `up` keeps: embedded database, sample, tokens', text, '.fleetbook'),
  FLEETBOOK_OPERATOR: setting('who acts by commands, for the audit log; unset: user@host', text),
  STALE_LIMIT: setting(
    'seconds for which memory, and what is in SNAPSHOT_DIR, answers when nothing else does',
    integer(0, 604_800, 'seconds'),
    '3600',
  ),
  TOKEN_STALE_LIMIT: setting(
    'seconds for which known tokens are accepted when they cannot be checked',
    integer(0, 86_400, 'seconds'),
    '900',
  ),
  MEMORY_LIMIT: setting(
    'bytes by which what one reader keeps of the data may enlarge its process; in SNAPSHOT_DIR it keeps at most twice as many',
    integer(1_000_000, 9_999_999_999, 'bytes'),
    '256000000',
  ),
  POSTGRES_READS: setting(
    'reads that may fall back to PostgreSQL at the same time; beyond: 503',
    integer(1, 1_000, 'a count'),
    '16',
  ),
  WRITE_STATEMENT_TIMEOUT: setting(
    'seconds that PostgreSQL gives one statement of `work`, or of a command that writes; 0: no limit',
    integer(0, 86_400, 'seconds'),
    '900',
  ),
  CHANGES_KEPT: setting(
    'days for which it is kept what each run has changed, and what `/v1/changes` has told',
    integer(1, 3_650, 'days'),
    '90',
  ),
  RATE_LIMIT: setting(
    'requests a minute that one token may make of one process; 0: no limit. Beyond: 429',
    integer(0, 1_000_000_000, 'a count'),
    '0',
  ),
  MAX_CONNECTIONS: setting(
    'open connections to the API of one process, half of them for one address that is no trusted proxy; further ones are closed at once. Half as many streams of `/v1/changes` and waiting requests are held. 0: no limit of connections, 5,000 streams',
    integer(0, 1_000_000, 'a count'),
    '10000',
  ),
  MAX_EVENT_LOOP_DELAY: setting(
    'milliseconds by which the event loop may be late before requests are refused with 503, but for what memory answers. 0: no limit',
    integer(0, 60_000, 'milliseconds'),
    '1000',
  ),
  TRUST_PROXY: setting('addresses of proxies whose X-Forwarded-For is believed', cidrs),
  CORS_ORIGINS: setting(
    'origins whose pages may read the API in a browser, such as https://app.example.com,https://admin.example.com; *: all. Unset: none',
    corsOrigins,
  ),
} satisfies SettingDefinitions;

type ValuesOf<D extends SettingDefinitions> = {
  readonly [K in keyof D]: ReturnType<D[K]['read']> | (D[K]['fallback'] extends string ? never : undefined);
};

/** The values of the core's settings. */
export type Settings = ValuesOf<typeof SETTINGS> & {
  /** The variables that they were read from. A feature reads its own settings of it, see `settingsOf`. */
  readonly environment: Environment;
};

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Reads every setting, and reports all that are wrong at once.
 * @param more settings of features, which are checked too
 * @throws BadSetting with one line for each: the variable's name, its value (never a secret one) and what would do.
 */
export function readSettings(env: Environment, more: SettingDefinitions = {}): Settings {
  const problems: string[] = [];
  const settings = inspectSettings(env, problems);
  valuesOf(more, env, problems);
  if (problems.length > 0) throw new BadSetting(problems.join('\n'));
  return settings;
}

/** Reads every setting. A wrong one gets its default, and a line in `problems`, so that the others are still usable. */
export function inspectSettings(environment: Environment, problems: string[]): Settings {
  return Object.freeze({ ...valuesOf(SETTINGS, environment, problems), environment });
}

/**
 * The settings of a feature.
 * @throws BadSetting as `readSettings`
 */
export function settingsOf<const D extends SettingDefinitions>(
  { settings }: Configured,
  definitions: D,
): ValuesOf<D> {
  const problems: string[] = [];
  const values = valuesOf(definitions, settings.environment, problems);
  if (problems.length > 0) throw new BadSetting(problems.join('\n'));
  return values;
}

/** The values of these settings. Adds a line to `problems` for each wrong one, which gets its default. */
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
      problems.push(`${name} has no use without ${main}; set both`);
  }
  return result as ValuesOf<D>;
}

export interface Configured {
  readonly settings: Settings;
}

/** @throws BadSetting that says what to give, and that `up` would bring a database of its own. */
export function databaseUrl({ settings }: Configured): string {
  if (settings.DATABASE_URL) return settings.DATABASE_URL;
  throw new BadSetting(
    'DATABASE_URL is not set; give postgres://user:password@host/database, or use `fleetbook up`, which brings its own',
  );
}

/**
 * The same with the address for what needs a session.
 * @throws BadSetting where a pooler is named that has none, and nothing else.
 */
export function databaseUrls(config: Configured): { readonly url: string; readonly directUrl: string } {
  const url = databaseUrl(config);
  const { DIRECT_DATABASE_URL: directUrl } = config.settings;
  if (directUrl === undefined && postgresAddress(url).isPooled)
    throw new BadSetting(
      'DIRECT_DATABASE_URL is not set, and DATABASE_URL names a pooler in transaction mode (pool_mode=transaction); give the address of the server itself, for locks, temporary tables, COPY and migrations',
    );
  return { url, directUrl: directUrl ?? url };
}
