import type { Environment, FeatureConfig } from '../config/config.ts';
import { SETTINGS, type SettingDefinitions } from '../config/settings.ts';
import { consoleFeature } from '../features/console/index.ts';
import { costsFeature } from '../features/costs/index.ts';
import { databasesFeature } from '../features/databases/index.ts';
import { diskCopyFeature } from '../features/disk-copy/index.ts';
import { exportsFeature } from '../features/exports/index.ts';
import { feedFeature } from '../features/feed/index.ts';
import { notificationsFeature } from '../features/notifications/index.ts';
import { operatorsFeature } from '../features/operators/index.ts';
import { priceBookFeature } from '../features/price-book/index.ts';
import { replicaFeature } from '../features/replica/index.ts';
import { searchFeature } from '../features/search/index.ts';
import { tracingFeature } from '../features/tracing/index.ts';
import type { Feature, OpenAlerts, TracedProgram, Tracing } from './feature.ts';

export const FEATURES: readonly Feature[] = [
  searchFeature,
  costsFeature,
  databasesFeature,
  feedFeature,
  diskCopyFeature,
  replicaFeature,
  exportsFeature,
  notificationsFeature,
  tracingFeature,
  operatorsFeature,
  priceBookFeature,
  consoleFeature,
];

/** The settings of all features. A process reads all at its start, so that it reports every wrong one. */
export const FEATURE_SETTINGS: SettingDefinitions = Object.assign(
  {},
  ...FEATURES.map(({ settings }) => settings ?? {}),
);

/** Every setting except those of sources (`<ID>_URL`, `<ID>_TOKEN`, `<ID>_SCHEDULE`, `<ID>_MAX_AGE`). */
export const ALL_SETTINGS: SettingDefinitions = { ...SETTINGS, ...FEATURE_SETTINGS };

export const FOUND_KINDS: Readonly<Record<string, string>> = Object.assign(
  {},
  ...FEATURES.map(({ conditions }) => conditions?.kinds ?? {}),
);

export const FEATURE_CONFIG: FeatureConfig = {
  settings: FEATURE_SETTINGS,
  sections: FEATURES.flatMap(({ file }) =>
    file ? { name: file.name, shape: file.shape(Object.keys(FOUND_KINDS)) } : [],
  ),
  problems: (config) => FEATURES.flatMap(({ problems }) => problems?.(config) ?? []),
};

export const openAlerts: OpenAlerts | undefined = FEATURES.find((feature) => feature.openAlerts)?.openAlerts;

/** The tracing of this process. Undefined if no feature traces or the environment does not configure it. */
export async function openTracing(env: Environment, program: TracedProgram): Promise<Tracing | undefined> {
  for (const { trace } of FEATURES) {
    const tracing = await trace?.(env, program);
    if (tracing) return tracing;
  }
  return undefined;
}
