import { SETTINGS, type SettingDefinitions } from '../config/settings.ts';
import { FEATURES } from './features.ts';

/** The settings of all features. A process reads them at its start, so that it reports every wrong one at once. */
export const FEATURE_SETTINGS: SettingDefinitions = Object.assign(
  {},
  ...FEATURES.map(({ settings }) => settings ?? {}),
);

/** Every setting that is not a source's own (`<ID>_URL`, `<ID>_TOKEN`, `<ID>_SCHEDULE`, `<ID>_MAX_AGE`). */
export const ALL_SETTINGS: SettingDefinitions = { ...SETTINGS, ...FEATURE_SETTINGS };
