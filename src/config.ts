import { CronExpressionParser } from 'cron-parser';
import { isHttpUrl, sourcesOfFile } from './config-file.ts';
import { BadSetting, readSettings, type Settings } from './settings.ts';
import type { Environment, SourceConfig } from './source-config.ts';
import { type ClusterRules, NO_RULES } from './sources/cluster-rules.ts';
import { environmentKey, optionsInEnvironment, readOptions } from './sources/options.ts';
import { adapter as ecb } from './sources/rates/ecb.ts';
import { catalogueAdapters, clusterAdapters } from './sources/registry.ts';
import { DEFAULT_LIMITS } from './sync/guard.ts';

export type { Environment, SourceConfig } from './source-config.ts';

export interface Config {
  readonly settings: Settings;
  readonly sources: readonly SourceConfig[];
}

/** Id of the source that brings exchange rates. */
const RATES_SOURCE = 'exchange-rates';

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

/** Reference rates are a source of their own, where a price is said in a currency that is not configured. */
function ratesSource(env: Environment, settings: Settings, sources: readonly SourceConfig[]): SourceConfig[] {
  const known = new Set([settings.CATALOGUE_CURRENCY, ...Object.keys(settings.CATALOGUE_RATES ?? {})]);
  const needed = sources.flatMap((source) => {
    if (source.kind === 'catalogue')
      return source.adapter.currency ?? source.options?.currency ?? 'whatever its rows say';
    return source.kind === 'clusters' ? currenciesOf(source.rules) : [];
  });
  if (needed.every((currency) => known.has(currency))) return [];
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

function currenciesOf({ diskTypes }: ClusterRules): string[] {
  return Object.values(diskTypes).flatMap(({ price }) => price?.currency ?? []);
}

/** The environment that makes every provider a source that needs no credentials: what `up --live` adds. */
export function liveEnvironment(env: Environment): Record<string, string> {
  const added: Record<string, string> = {};
  for (const adapter of catalogueAdapters) {
    const key = environmentKey(adapter.id, 'url');
    const isOpen = adapter.credentials === 'none' || adapter.credentials === 'optional-bearer';
    if (!adapter.provider || !isOpen || adapter.large || env[key]) continue;
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
    const source = { kind: 'clusters', id: 'clusters', adapter, url, token, schedule } as const;
    found.push({ ...source, limits: DEFAULT_LIMITS, rules: NO_RULES });
  }
  return found;
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
