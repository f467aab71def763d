import { readFileSync } from 'node:fs';
import { CronExpressionParser } from 'cron-parser';
import { z } from 'zod';
import { BadSetting, readSettings, type Settings } from './settings.ts';
import { environmentKey, optionsInEnvironment, type ReadOptions, readOptions } from './sources/options.ts';
import { adapter as ecb } from './sources/rates/ecb.ts';
import { catalogueAdapters, clusterAdapters } from './sources/registry.ts';
import type { AnyCatalogueAdapter, ClusterAdapter } from './sources/source.ts';
import { DEFAULT_LIMITS, type GuardLimits } from './sync/guard.ts';

interface SourceBase {
  /** Names the source in the database, in logs and on the command line. */
  readonly id: string;
  readonly url: string;
  readonly token: string | undefined;
  /** Five cron fields, UTC. */
  readonly schedule: string;
  readonly limits: GuardLimits;
}

export type SourceConfig =
  | (SourceBase & {
      readonly kind: 'catalogue';
      readonly adapter: AnyCatalogueAdapter;
      /** Of an adapter that has some, as its schema read them. */
      readonly options?: ReadOptions;
    })
  | (SourceBase & { readonly kind: 'clusters'; readonly adapter: ClusterAdapter })
  | (SourceBase & { readonly kind: 'rates'; readonly adapter: typeof ecb });

export interface Config {
  readonly settings: Settings;
  readonly sources: readonly SourceConfig[];
}

/** Id of the source that brings exchange rates. */
const RATES_SOURCE = 'exchange-rates';

export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Reads the environment, and the file that FLEETBOOK_CONFIG names, once and whole.
 * @throws BadSetting that names everything that is wrong, one line each, and what would do.
 */
export function readConfig(env: Environment): Config {
  const settings = readSettings(env);
  const problems: string[] = [];
  const sources: SourceConfig[] = [...sourcesOfEnvironment(env, problems)];
  if (settings.FLEETBOOK_CONFIG !== undefined)
    sources.push(...sourcesOfFile(settings.FLEETBOOK_CONFIG, env, problems));
  sources.push(...ratesSource(env, settings, sources));
  const ids = new Set<string>();
  for (const { id, schedule } of sources) {
    if (ids.has(id)) problems.push(`source "${id}" is configured twice; give one of them another id`);
    ids.add(id);
    const problem = scheduleProblem(schedule);
    if (problem)
      problems.push(`the schedule of source "${id}" ${problem}; it is ${JSON.stringify(schedule)}`);
  }
  if (problems.length > 0) throw new BadSetting(problems.join('\n'));
  return Object.freeze({ settings, sources });
}

/** Reference rates are a source of their own, where a catalogue is priced in a currency that is not configured. */
function ratesSource(env: Environment, settings: Settings, sources: readonly SourceConfig[]): SourceConfig[] {
  const known = new Set([settings.CATALOGUE_CURRENCY, ...Object.keys(settings.CATALOGUE_RATES ?? {})]);
  const needed = sources.some(
    (source) =>
      source.kind === 'catalogue' &&
      !known.has(source.adapter.currency ?? source.options?.currency ?? 'whatever its rows say'),
  );
  if (!needed) return [];
  const url = settings.EXCHANGE_RATES_URL;
  const schedule = env.EXCHANGE_RATES_SCHEDULE || ecb.schedule;
  return [
    {
      kind: 'rates',
      id: RATES_SOURCE,
      adapter: ecb,
      url,
      token: undefined,
      schedule,
      limits: DEFAULT_LIMITS,
    },
  ];
}

/** The environment that makes every provider a source that needs no credentials: what `up --live` adds. */
export function liveEnvironment(env: Environment): Record<string, string> {
  const added: Record<string, string> = {};
  for (const adapter of catalogueAdapters) {
    const key = environmentKey(adapter.id, 'url');
    if (!adapter.provider || adapter.credentials !== 'none' || adapter.large || env[key]) continue;
    added[key] = adapter.baseUrl;
  }
  return added;
}

/** True when somebody has said where data is to come from: then the sample stays away. */
export function namesASource(env: Environment): boolean {
  const keys = catalogueAdapters.flatMap(({ id }) => [
    environmentKey(id, 'url'),
    environmentKey(id, 'token'),
  ]);
  return [...keys, 'CLUSTERS_URL', 'FLEETBOOK_CONFIG'].some((key) => Boolean(env[key]));
}

function sourcesOfEnvironment(env: Environment, problems: string[]): SourceConfig[] {
  const found: SourceConfig[] = [];
  for (const adapter of catalogueAdapters) {
    const key = (name: string) => environmentKey(adapter.id, name);
    const given = env[key('url')];
    const token = env[key('token')] || undefined;
    if (!given && token === undefined) continue;
    const url = given || (adapter.provider ? adapter.baseUrl : '');
    const orPath = !adapter.provider && adapter.readsFiles;
    if (!isHttpUrl(url) && !(orPath && url !== ''))
      problems.push(
        `${key('url')} must be a URL that starts with http:// or https://${orPath ? ', or a path' : ''}; it is ${JSON.stringify(url)}`,
      );
    const schedule = env[key('schedule')] || adapter.schedule;
    const source = {
      kind: 'catalogue',
      id: adapter.id,
      url,
      token,
      schedule,
      limits: DEFAULT_LIMITS,
    } as const;
    if (adapter.provider) {
      found.push({ ...source, adapter });
    } else {
      const own = optionsInEnvironment(adapter.id, adapter.options, env);
      const { options, problems: wrong } = readOptions(adapter.options, own, key);
      problems.push(...wrong);
      found.push({ ...source, adapter, options });
    }
  }
  const url = env.CLUSTERS_URL;
  const adapter = clusterAdapters.find(({ id }) => id === 'json');
  if (url && adapter) {
    const token = env.CLUSTERS_TOKEN || undefined;
    const schedule = env.CLUSTERS_SCHEDULE || adapter.schedule;
    found.push({ kind: 'clusters', id: 'clusters', adapter, url, token, schedule, limits: DEFAULT_LIMITS });
  }
  return found;
}

const share = z.number().min(0);
const limitsShape = z
  .strictObject({
    removedShare: share,
    addedShare: share,
    repricedShare: share,
    priceRatio: z.number().min(1),
    reshapedShare: share,
    duplicateShare: share,
    incompleteShare: share,
    rejectedShare: share,
    smallCount: z.int().min(0),
    maxHourlyPrice: z.number().positive(),
  })
  .partial();

const sourceShape = z.strictObject({
  id: z.string().regex(/^[a-z0-9][a-z0-9-]{0,62}$/, 'must be lower-case letters, digits and dashes'),
  adapter: z.string(),
  url: z.string().optional(),
  tokenEnv: z.string().optional(),
  schedule: z.string().optional(),
  options: z.record(z.string(), z.unknown()).optional(),
  limits: limitsShape.optional(),
});

/** What FLEETBOOK_CONFIG holds. Tokens are named, never written there: `tokenEnv` is the variable that has it. */
const fileShape = z.strictObject({
  catalogues: z.array(sourceShape).default([]),
  clusters: z.array(sourceShape).default([]),
});

function sourcesOfFile(path: string, env: Environment, problems: string[]): SourceConfig[] {
  let content: unknown;
  try {
    content = JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    problems.push(`FLEETBOOK_CONFIG must name a readable JSON file; ${path}: ${(error as Error).message}`);
    return [];
  }
  const parsed = fileShape.safeParse(content);
  if (!parsed.success) {
    for (const issue of parsed.error.issues)
      problems.push(`${path}: ${issue.path.join('.') || 'the file'}: ${issue.message}`);
    return [];
  }
  const found: SourceConfig[] = [];
  const add = (kind: 'catalogue' | 'clusters', entry: z.infer<typeof sourceShape>) => {
    const where = `${path}: source "${entry.id}"`;
    const adapters: readonly (AnyCatalogueAdapter | ClusterAdapter)[] =
      kind === 'catalogue' ? catalogueAdapters : clusterAdapters;
    const adapter = adapters.find(({ id }) => id === entry.adapter);
    if (!adapter) {
      problems.push(
        `${where}: adapter must be one of ${adapters.map(({ id }) => id).join(', ')}; it is "${entry.adapter}"`,
      );
      return;
    }
    const token = entry.tokenEnv === undefined ? undefined : env[entry.tokenEnv];
    if (entry.tokenEnv !== undefined && !token)
      problems.push(`${where}: tokenEnv names ${entry.tokenEnv}, which is not set`);
    const url = entry.url ?? ('baseUrl' in adapter ? adapter.baseUrl : undefined);
    if (url === undefined) {
      problems.push(`${where}: url is missing; give the address or the file to read`);
      return;
    }
    const limits: GuardLimits = { ...DEFAULT_LIMITS, ...definedOnly(entry.limits ?? {}) };
    const schema = 'options' in adapter ? adapter.options : undefined;
    if (entry.options !== undefined && schema === undefined)
      problems.push(`${where}: options must be left out; the adapter ${adapter.id} has none`);
    const nameOf = (option: string) => `${where}: options${option === '' ? '' : `.${option}`}`;
    const { options, problems: wrong } = schema
      ? readOptions(schema, entry.options ?? {}, nameOf)
      : { options: undefined, problems: [] };
    problems.push(...wrong);
    found.push({
      kind,
      adapter,
      id: entry.id,
      url,
      token,
      schedule: entry.schedule ?? adapter.schedule,
      limits,
      ...(options === undefined ? {} : { options }),
    } as SourceConfig);
  };
  for (const entry of parsed.data.catalogues) add('catalogue', entry);
  for (const entry of parsed.data.clusters) add('clusters', entry);
  return found;
}

function definedOnly<T extends object>(object: T): { [K in keyof T]-?: NonNullable<T[K]> } {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]-?: NonNullable<T[K]>;
  };
}

function isHttpUrl(value: string): boolean {
  return URL.canParse(value) && ['http:', 'https:'].includes(new URL(value).protocol);
}

function scheduleProblem(schedule: string): string | undefined {
  if (schedule.trim().split(/\s+/).length !== 5) return 'must have five cron fields, such as "17 * * * *"';
  try {
    CronExpressionParser.parse(schedule, { tz: 'UTC' });
    return undefined;
  } catch (error) {
    return `is no cron expression (${(error as Error).message})`;
  }
}
