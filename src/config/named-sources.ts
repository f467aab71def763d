/** Which sources are configured, by the environment and by the file that FLEETBOOK_CONFIG names. */
import { CronExpressionParser } from 'cron-parser';
import { didYouMean } from '../lib/did-you-mean.ts';
import { environmentKey } from '../sources/schema/options.ts';
import { DEFAULT_GUARD_LIMITS, type GuardLimits } from '../sync/guard.ts';
import { type AdapterSummary, CATALOGUES, CLUSTERS, RATES } from './adapter-summary.ts';
import { defaultMaxAge, LONGEST_MAX_AGE } from './max-age.ts';
import { integer } from './setting-values.ts';
import { BadSetting, readSettings, type Settings } from './settings.ts';
import type { Environment } from './source-config.ts';
import {
  type ClusterEntry,
  type FileSection,
  readSourcesFile,
  type SourceEntry,
  type SourcesFile,
} from './sources-file.ts';

interface Named {
  readonly id: string;
  readonly adapter: { readonly id: string } & AdapterSummary;
  /** Five cron fields, UTC. */
  readonly schedule: string;
  /** Seconds that its data may be old: three of its longest intervals unless it is configured. */
  readonly maxAge: number;
  readonly limits: GuardLimits;
}

/** A source without its credentials and whatever else takes its adapter to read. */
export type NamedSource =
  /** `entry` is that of the file; absent where the environment configures it. */
  | (Named & {
      readonly kind: 'catalogue';
      readonly options: { readonly provider?: unknown };
      readonly entry?: SourceEntry;
    })
  | (Named & { readonly kind: 'clusters'; readonly entry?: ClusterEntry })
  | (Named & { readonly kind: 'rates' });

/** The id, and the prefix of the variables, of the one source of clusters that needs no file; it reads JSON. */
const CLUSTERS_SOURCE = { id: 'clusters', adapter: 'json' } as const;
const RATES_SOURCE = 'exchange-rates';

/** Variables any of which says that an adapter's default source exists. */
const MAKING = ['url', 'token', 'tokenCommand', 'credentialType'] as const;

/** True when somebody has said where data is to come from: then the sample stays away. */
export function namesASource(env: Environment): boolean {
  const keys = Object.keys(CATALOGUES).flatMap((id) => MAKING.map((name) => environmentKey(id, name)));
  return [...keys, 'CLUSTERS_URL', 'FLEETBOOK_CONFIG'].some((key) => Boolean(env[key]));
}

/**
 * @param sections of the file, which are checked too
 * @throws BadSetting that names everything that is wrong, one line each, and what would do.
 */
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

/** The sources of the environment and those of the file; what is wrong is added to `problems`, a line each. */
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
  if (needsRates(env, settings, found)) found.push(ratesSource(env, problems));
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

/** The sources that variables configure, except those that an entry of the file replaces. */
function sourcesOfEnvironment(env: Environment, file: SourcesFile, problems: string[]): NamedSource[] {
  const entries = entriesOf(file);
  const replaced = new Set(entries.filter((each) => isDefault(each.kind, each.entry)).map(idOf));
  // A variable that an entry names makes no source by itself.
  const named = new Set(entries.flatMap(({ entry }) => variablesOf(entry)));
  const found: NamedSource[] = [];
  for (const [id, adapter] of Object.entries(CATALOGUES)) {
    const given = (name: string) => env[environmentKey(id, name)] || undefined;
    if (replaced.has(id) || !MAKING.some((name) => given(name) && !named.has(environmentKey(id, name))))
      continue;
    const schedule = given('schedule') ?? adapter.schedule;
    found.push({
      kind: 'catalogue',
      id,
      adapter: { id, ...adapter },
      schedule,
      maxAge: maxAgeIn(env, environmentKey(id, 'maxAge'), schedule, problems),
      limits: DEFAULT_GUARD_LIMITS,
      options: { provider: given('provider') },
    });
  }
  const json = CLUSTERS[CLUSTERS_SOURCE.adapter];
  if (json && env.CLUSTERS_URL && !replaced.has(CLUSTERS_SOURCE.id)) {
    const adapter = { id: CLUSTERS_SOURCE.adapter, ...json };
    const schedule = env.CLUSTERS_SCHEDULE || adapter.schedule;
    const maxAge = maxAgeIn(env, 'CLUSTERS_MAX_AGE', schedule, problems);
    const { id } = CLUSTERS_SOURCE;
    found.push({ kind: 'clusters', id, adapter, schedule, maxAge, limits: DEFAULT_GUARD_LIMITS });
  }
  return found;
}

/** @param path of the file, for problems */
function sourcesOfFile(file: SourcesFile, path: string | undefined, problems: string[]): NamedSource[] {
  const found: NamedSource[] = [];
  for (const { kind, entry, adapters: known } of entriesOf(file)) {
    const adapter = known[entry.adapter];
    if (adapter === undefined) {
      problems.push(
        `${path}: source "${entry.id}": adapter must be one of ${Object.keys(known).join(', ')}; it is "${entry.adapter}"${didYouMean(entry.adapter, Object.keys(known))}`,
      );
      continue;
    }
    const schedule = entry.schedule ?? adapter.schedule;
    const common = {
      id: entry.id,
      adapter: { id: entry.adapter, ...adapter },
      schedule,
      maxAge: entry.maxAge ?? maxAgeBy(schedule),
      limits: { ...DEFAULT_GUARD_LIMITS, ...definedOnly(entry.limits ?? {}) },
    };
    if (kind === 'clusters') found.push({ kind, ...common, entry });
    else found.push({ kind, ...common, options: entry.options ?? {}, entry });
  }
  return found;
}

function ratesSource(env: Environment, problems: string[]): NamedSource {
  const adapter = { id: 'ecb', ...RATES };
  const schedule = env.EXCHANGE_RATES_SCHEDULE || adapter.schedule;
  const maxAge = maxAgeIn(env, 'EXCHANGE_RATES_MAX_AGE', schedule, problems);
  return { kind: 'rates', id: RATES_SOURCE, adapter, schedule, maxAge, limits: DEFAULT_GUARD_LIMITS };
}

const entriesOf = (file: SourcesFile) => [
  ...file.catalogues.map((entry) => ({ kind: 'catalogue', entry, adapters: CATALOGUES }) as const),
  ...file.clusters.map((entry) => ({ kind: 'clusters', entry, adapters: CLUSTERS }) as const),
];

const idOf = ({ entry }: { readonly entry: SourceEntry }) => entry.id;

/** Whether an entry takes the place of the source that the environment would configure. */
export function isDefault(kind: 'catalogue' | 'clusters', { id, adapter }: SourceEntry): boolean {
  if (kind === 'clusters') return id === CLUSTERS_SOURCE.id && adapter === CLUSTERS_SOURCE.adapter;
  return id === adapter && id in CATALOGUES;
}

/** The variables that an entry names. */
export function variablesOf({ tokenEnv, apiKeyEnv, credentials }: SourceEntry): string[] {
  const secret = credentials && 'clientSecretEnv' in credentials ? credentials.clientSecretEnv : undefined;
  return [tokenEnv, apiKeyEnv, secret].filter((name) => name !== undefined);
}

/** Reference rates are a source of their own, where a price is said in a currency that is not configured. */
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
    const { currency, provider } = source.adapter;
    const option = source.entry ? source.entry.options?.currency : env[environmentKey(source.id, 'currency')];
    // Where only the rows say it, it may be any.
    if (currency === undefined) return true;
    return !known.has(provider ? currency : option || currency);
  });
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

const readMaxAge = integer(1, LONGEST_MAX_AGE, 'seconds');

/** The seconds in a variable, or three intervals of the schedule if it is not set. */
function maxAgeIn(env: Environment, key: string, schedule: string, problems: string[]): number {
  return givenMaxAge(key, env[key], problems) ?? maxAgeBy(schedule);
}

/** What a variable says, in seconds; undefined where it is not set. */
function givenMaxAge(key: string, value: string | undefined, problems: string[]): number | undefined {
  if (!value) return undefined;
  try {
    return readMaxAge(value);
  } catch (error) {
    if (!(error instanceof BadSetting)) throw error;
    problems.push(`${key} ${error.message}; it is ${JSON.stringify(value)}`);
    return undefined;
  }
}

/** Three intervals. What is no schedule stops the start for itself. */
const maxAgeBy = (schedule: string): number =>
  scheduleProblem(schedule) === undefined ? defaultMaxAge(schedule) : 0;

function definedOnly<T extends object>(object: T): { [K in keyof T]-?: NonNullable<T[K]> } {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]-?: NonNullable<T[K]>;
  };
}
