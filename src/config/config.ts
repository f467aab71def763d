import { CronExpressionParser } from 'cron-parser';
import type { ClusterRules } from '../sources/cluster-rules.ts';
import { NO_CREDENTIALS } from '../sources/credentials/provider.ts';
import { adapter as ecb } from '../sources/rates/ecb.ts';
import { DEFAULT_LIMITS } from '../sync/guard.ts';
import { sourcesOfEnvironment } from './environment-sources.ts';
import { BadSetting, readSettings, type Settings } from './settings.ts';
import type { Environment, SourceConfig } from './source-config.ts';
import { readSourcesFile, sourcesOfFile } from './sources-file.ts';
import { takeover } from './takeover.ts';

export { liveEnvironment, namesASource } from './environment-sources.ts';
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
  const path = settings.FLEETBOOK_CONFIG;
  const file = path === undefined ? { catalogues: [], clusters: [] } : readSourcesFile(path, problems);
  const taken = takeover(path ?? '', file, env, problems);
  const sources: SourceConfig[] = [
    ...sourcesOfEnvironment(env, taken, problems),
    ...sourcesOfFile(path ?? '', taken.file, env, problems),
  ];
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
      credentials: NO_CREDENTIALS,
      schedule,
      limits: DEFAULT_LIMITS,
    },
  ];
}

function currenciesOf({ diskTypes }: ClusterRules): string[] {
  return Object.values(diskTypes).flatMap(({ price }) => price?.currency ?? []);
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
