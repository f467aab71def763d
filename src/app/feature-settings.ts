import type { FeatureConfig } from '../config/config.ts';
import { SETTINGS, type SettingDefinitions } from '../config/settings.ts';
import { FEATURES } from './features.ts';

/** The settings of all features. A process reads all at its start, so that it reports every wrong one. */
export const FEATURE_SETTINGS: SettingDefinitions = Object.assign(
  {},
  ...FEATURES.map(({ settings }) => settings ?? {}),
);

/** Every setting except those of sources (`<ID>_URL`, `<ID>_TOKEN`, `<ID>_SCHEDULE`, `<ID>_MAX_AGE`). */
export const ALL_SETTINGS: SettingDefinitions = { ...SETTINGS, ...FEATURE_SETTINGS };

/** Kinds of features' conditions, each with a text that says when it holds. */
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
