import type { FeatureConfig } from '../config/config.ts';
import { SETTINGS, type SettingDefinitions } from '../config/settings.ts';
import { FEATURES } from './features.ts';

/** The settings of all features. A process reads them at its start, so that it reports every wrong one at once. */
export const FEATURE_SETTINGS: SettingDefinitions = Object.assign(
  {},
  ...FEATURES.map(({ settings }) => settings ?? {}),
);

/** Every setting that is not a source's own (`<ID>_URL`, `<ID>_TOKEN`, `<ID>_SCHEDULE`, `<ID>_MAX_AGE`). */
export const ALL_SETTINGS: SettingDefinitions = { ...SETTINGS, ...FEATURE_SETTINGS };

/** Kinds of conditions that features find, with when each holds, in words. */
export const FOUND_KINDS: Readonly<Record<string, string>> = Object.assign(
  {},
  ...FEATURES.map(({ conditions }) => conditions?.kinds ?? {}),
);

/** What features can be configured with. */
export const FEATURE_CONFIG: FeatureConfig = {
  settings: FEATURE_SETTINGS,
  sections: FEATURES.flatMap(({ file }) =>
    file ? { name: file.name, shape: file.shape(Object.keys(FOUND_KINDS)) } : [],
  ),
  problems: (config) => FEATURES.flatMap(({ problems }) => problems?.(config) ?? []),
};
