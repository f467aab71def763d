import { resolve } from 'node:path';
import { catalogueAdapters } from '../sources/registry.ts';
import { environmentKey } from '../sources/schema/options.ts';
import { type NamedSource, namedSources } from './named-sources.ts';
import { openSources } from './open-sources.ts';
import {
  BadSetting,
  inspectSettings,
  SETTINGS,
  type Setting,
  type SettingDefinitions,
  type Settings,
  valuesOf,
} from './settings.ts';
import type { Environment, SourceConfig } from './source-config.ts';
import { type FileSection, type FileSections, readSourcesFile } from './sources-file.ts';

export { namesASource } from './named-sources.ts';
export type { Environment, SourceConfig } from './source-config.ts';

export interface Config {
  readonly settings: Settings;
  readonly sources: readonly SourceConfig[];
  readonly sections: FileSections;
  /** `up` sets FLEETBOOK_CONTENT for its processes: the sources are the sample catalogue. */
  readonly content: 'sample' | 'live';
}

export interface FeatureConfig {
  readonly settings: SettingDefinitions;
  readonly sections: readonly FileSection[];
  /** Returns problems that concern several settings or sections, one line each. */
  readonly problems: (config: WithSections) => readonly string[];
}

export type WithSections = Pick<Config, 'settings' | 'sections'>;

export const NO_FEATURES: FeatureConfig = { settings: {}, sections: [], problems: () => [] };

/** Reads the environment and FLEETBOOK_CONFIG. @throws BadSetting with one line for each problem and its remedy */
export function readConfig(env: Environment, features?: FeatureConfig): Config {
  const { problems, named: _, ...config } = inspectConfig(env, features);
  if (problems.length > 0) throw new BadSetting(problems.join('\n'));
  return Object.freeze(config);
}

export interface InspectedConfig extends Config {
  /** All configured sources, including those that cannot be opened. */
  readonly named: readonly NamedSource[];
  readonly problems: readonly string[];
}

/** Reads the configuration and never throws. A wrong value has its default or is left out. */
export function inspectConfig(env: Environment, features: FeatureConfig = NO_FEATURES): InspectedConfig {
  const problems: string[] = [];
  const settings = inspectSettings(env, problems);
  valuesOf(features.settings, env, problems);
  const file = readSourcesFile(settings.FLEETBOOK_CONFIG, features.sections, problems);
  const named = namedSources(env, settings, file, problems);
  const sources = openSources(named, settings, env, problems);
  const { sections } = file;
  problems.push(...features.problems({ settings, sections }));
  const content = env.FLEETBOOK_CONTENT === 'sample' ? 'sample' : 'live';
  return { settings, named, sources, sections, content, problems };
}

/** Returns all variables that the configuration reads, including those that the file names. */
export function variablesRead(env: Environment, features: FeatureConfig): Record<string, string> {
  const read: Record<string, string> = {};
  inspectConfig(
    new Proxy(env, {
      get(target, name) {
        const value = typeof name === 'string' ? target[name] : undefined;
        if (value !== undefined) read[String(name)] = value;
        return value;
      },
    }),
    features,
  );
  // A later command may run in another folder.
  for (const [name, { isPath }] of Object.entries<Setting<unknown>>({ ...SETTINGS, ...features.settings }))
    if (isPath && read[name]) read[name] = resolve(read[name]);
  return read;
}

/** Returns the variables for `up --live`, which make a source of every provider that needs no credentials. */
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
