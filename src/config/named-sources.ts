import { CronExpressionParser } from 'cron-parser';
import type { PricedSource } from '../domain/prices/exchange-rates.ts';
import { adapter as endoflife } from '../sources/lifecycles/endoflife.ts';
import { adapter as ecb } from '../sources/rates/ecb.ts';
import { catalogueAdapters, clusterAdapters } from '../sources/registry.ts';
import { environmentKey } from '../sources/schema/options.ts';
import type { AnyCatalogueAdapter, ClusterAdapter, SourceOptions } from '../sources/source.ts';
import { DEFAULT_GUARD_LIMITS, type GuardLimits } from '../sync/guards.ts';
import { didYouMean } from './did-you-mean.ts';
import { defaultMaxAge } from './max-age.ts';
import { integer } from './setting-values.ts';
import { BadSetting, readSettings, type Settings } from './settings.ts';
import type { Environment, SourceConfig } from './source-config.ts';
import {
  type ClusterEntry,
  type FileSection,
  LONGEST_MAX_AGE,
  readSourcesFile,
  type SourceEntry,
  type SourcesFile,
} from './sources-file.ts';

interface Named {
  readonly id: string;
  readonly schedule: string;
  /** Largest accepted age of the data in seconds: by default three of the longest intervals. */
  readonly maxAge: number;
  readonly limits: GuardLimits;
}

/** A configured source before its options and credentials are read. `entry` is absent for a source of the environment. */
export type NamedSource =
  | (Named & {
      readonly kind: 'catalogue';
      readonly adapter: AnyCatalogueAdapter;
      readonly options: { readonly provider?: unknown };
      readonly entry?: SourceEntry;
    })
  | (Named & { readonly kind: 'clusters'; readonly adapter: ClusterAdapter; readonly entry?: ClusterEntry })
  | (Named & { readonly kind: 'rates'; readonly adapter: typeof ecb })
  | (Named & { readonly kind: 'lifecycles'; readonly adapter: typeof endoflife });

/** The only source of clusters that needs no file. Its id is the prefix of its variables. */
const CLUSTERS_SOURCE = { id: 'clusters', adapter: 'json' } as const;
const RATES_SOURCE = 'exchange-rates';
/** A worker reads it only if an operator sets its address. */
const LIFECYCLES_SOURCE = 'lifecycles';

/** Each of these variables creates the default source of an adapter. */
const CREATING = ['url', 'token', 'tokenCommand', 'credentialType'] as const;

/** Returns true if the environment configures a source, which replaces the sample. */
export function namesASource(env: Environment): boolean {
  const keys = catalogueAdapters.flatMap(({ id }) => CREATING.map((name) => environmentKey(id, name)));
  return [...keys, 'CLUSTERS_URL', 'FLEETBOOK_CONFIG'].some((key) => Boolean(env[key]));
}

export function readNamedSources(
  env: Environment,
  sections: readonly FileSection[],
): {
  readonly settings: Settings;
  readonly sources: readonly NamedSource[];
} {
  const settings = readSettings(env);
  const problems: string[] = [];
  const file = readSourcesFile(settings.FLEETBOOK_CONFIG, sections, problems);
  const sources = namedSources(env, settings, file, problems);
  if (problems.length > 0) throw new BadSetting(problems.join('\n'));
  return { settings, sources };
}

/** Returns the sources of the environment and of the file. It adds a line to `problems` for each problem. */
export function namedSources(
  env: Environment,
  settings: Settings,
  file: SourcesFile,
  problems: string[],
): NamedSource[] {
  const found = [
    ...sourcesOfEnvironment(env, file, problems),
    ...sourcesOfFile(file, settings.FLEETBOOK_CONFIG, problems),
  ];
  if (needsRates(env, settings, found))
    found.push({ kind: 'rates', ...inEnvironment(RATES_SOURCE, ecb, env, problems) });
  if (env[environmentKey(LIFECYCLES_SOURCE, 'url')])
    found.push({ kind: 'lifecycles', ...inEnvironment(LIFECYCLES_SOURCE, endoflife, env, problems) });
  const ids = new Set<string>();
  for (const { id, schedule } of found) {
    if (ids.has(id)) problems.push(`source "${id}" is configured twice; give one of them another id`);
    ids.add(id);
    const problem = scheduleProblem(schedule);
    if (problem)
      problems.push(`the schedule of source "${id}" ${problem}; it is ${JSON.stringify(schedule)}`);
  }
  return found;
}

function sourcesOfEnvironment(env: Environment, file: SourcesFile, problems: string[]): NamedSource[] {
  const entries = entriesOf(file);
  const replaced = new Set(
    entries.filter((each) => isDefault(each.kind, each.entry)).map(({ entry }) => entry.id),
  );
  // A variable that an entry names does not create a source.
  const named = new Set(entries.flatMap(({ entry }) => variablesOf(entry)));
  const found: NamedSource[] = [];
  for (const adapter of catalogueAdapters) {
    const { id } = adapter;
    const given = (name: string) => env[environmentKey(id, name)] || undefined;
    if (replaced.has(id) || !CREATING.some((name) => given(name) && !named.has(environmentKey(id, name))))
      continue;
    const options = { provider: given('provider') };
    found.push({ kind: 'catalogue', ...inEnvironment(id, adapter, env, problems), options });
  }
  const adapter = byId(clusterAdapters, CLUSTERS_SOURCE.adapter);
  if (adapter && env.CLUSTERS_URL && !replaced.has(CLUSTERS_SOURCE.id))
    found.push({ kind: 'clusters', ...inEnvironment(CLUSTERS_SOURCE.id, adapter, env, problems) });
  return found;
}

function inEnvironment<Adapter extends { readonly schedule: string }>(
  id: string,
  adapter: Adapter,
  env: Environment,
  problems: string[],
) {
  const schedule = env[environmentKey(id, 'schedule')] || adapter.schedule;
  const maxAge = maxAgeIn(env, environmentKey(id, 'maxAge'), schedule, problems);
  return { id, adapter, schedule, maxAge, limits: DEFAULT_GUARD_LIMITS };
}

function sourcesOfFile(file: SourcesFile, path: string | undefined, problems: string[]): NamedSource[] {
  const found: NamedSource[] = [];
  for (const { kind, entry, adapter } of entriesOf(file)) {
    if (adapter === undefined) {
      const ids = (kind === 'clusters' ? clusterAdapters : catalogueAdapters).map(({ id }) => id);
      problems.push(
        `${path}: source "${entry.id}": adapter must be one of ${ids.join(', ')}; it is "${entry.adapter}"${didYouMean(entry.adapter, ids)}`,
      );
      continue;
    }
    const schedule = entry.schedule ?? adapter.schedule;
    const common = {
      id: entry.id,
      schedule,
      maxAge: entry.maxAge ?? maxAgeBy(schedule),
      limits: { ...DEFAULT_GUARD_LIMITS, ...definedOnly(entry.limits ?? {}) },
    };
    if (kind === 'clusters') found.push({ kind, ...common, adapter, entry });
    else found.push({ kind, ...common, adapter, options: entry.options ?? {}, entry });
  }
  return found;
}

const entriesOf = (file: SourcesFile) => [
  ...file.catalogues.map(
    (entry) => ({ kind: 'catalogue', entry, adapter: byId(catalogueAdapters, entry.adapter) }) as const,
  ),
  ...file.clusters.map(
    (entry) => ({ kind: 'clusters', entry, adapter: byId(clusterAdapters, entry.adapter) }) as const,
  ),
];

const byId = <A extends { readonly id: string }>(adapters: readonly A[], id: string) =>
  adapters.find((adapter) => adapter.id === id);

/** Returns true if an entry replaces the source of the environment with the same id. */
export function isDefault(kind: 'catalogue' | 'clusters', { id, adapter }: SourceEntry): boolean {
  if (kind === 'clusters') return id === CLUSTERS_SOURCE.id && adapter === CLUSTERS_SOURCE.adapter;
  return id === adapter && catalogueAdapters.some((each) => each.id === id);
}

export function variablesOf({ tokenEnv, apiKeyEnv, credentials }: SourceEntry): string[] {
  const secret = credentials && 'clientSecretEnv' in credentials ? credentials.clientSecretEnv : undefined;
  return [tokenEnv, apiKeyEnv, secret].filter((name) => name !== undefined);
}

/** Returns true if a price may have a currency without a configured rate. */
function needsRates(env: Environment, settings: Settings, sources: readonly NamedSource[]): boolean {
  const known = new Set<unknown>([
    settings.CATALOGUE_CURRENCY,
    ...Object.keys(settings.CATALOGUE_RATES ?? {}),
  ]);
  return sources.some((source) => {
    if (source.kind !== 'catalogue') {
      const types = source.kind === 'clusters' ? Object.values(source.entry?.diskTypes ?? {}) : [];
      return types.some(({ price }) => price !== undefined && !known.has(price.currency));
    }
    const { adapter } = source;
    if (adapter.provider) return !known.has(adapter.currency);
    const option = source.entry ? source.entry.options?.currency : env[environmentKey(source.id, 'currency')];
    // Without a default currency, each row may have another one.
    const standard = optionDefaults(adapter).currency;
    return !standard || !known.has(option || standard);
  });
}

function scheduleProblem(schedule: string): string | undefined {
  if (schedule.trim().split(/\s+/).length !== 5) return 'must have five cron fields, such as "17 * * * *"';
  try {
    CronExpressionParser.parse(schedule, { tz: 'UTC' });
    return undefined;
  } catch (error) {
    return `is not a cron expression (${(error as Error).message})`;
  }
}

const readMaxAge = integer(1, LONGEST_MAX_AGE, 'seconds');

/** Returns the seconds of a variable, or three intervals of the schedule if it is not set. */
function maxAgeIn(env: Environment, key: string, schedule: string, problems: string[]): number {
  try {
    if (env[key]) return readMaxAge(env[key]);
  } catch (error) {
    if (!(error instanceof BadSetting)) throw error;
    problems.push(`${key} ${error.message}; it is ${JSON.stringify(env[key])}`);
  }
  return maxAgeBy(schedule);
}

/** Returns three intervals; 0 for an invalid schedule, which is reported separately. */
const maxAgeBy = (schedule: string): number =>
  scheduleProblem(schedule) === undefined ? defaultMaxAge(schedule) : 0;

function definedOnly<T extends object>(object: T): { [K in keyof T]-?: NonNullable<T[K]> } {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]-?: NonNullable<T[K]>;
  };
}

/** Returns an adapter's options with their defaults; null for an option without a default. */
export function optionDefaults(adapter: NamedSource['adapter']): Readonly<Record<string, string | null>> {
  const shape: SourceOptions['shape'] = ('options' in adapter && adapter.options?.shape) || {};
  return Object.fromEntries(
    Object.entries(shape).map(([name, option]) => [name, option.safeParse(undefined).data ?? null]),
  );
}

export function pricedSource(
  { id, kind, adapter }: SourceConfig | NamedSource,
  { CATALOGUE_RATES }: Settings,
): PricedSource {
  if (kind === 'lifecycles') return { id, kind };
  if (kind === 'rates') return { id, kind, givenRates: Object.keys(CATALOGUE_RATES ?? {}) };
  return { id, kind, currency: 'currency' in adapter ? adapter.currency : undefined };
}
