import type { FeatureConfig } from '../config/config.ts';
import { ALERT_SECTION, alertProblems } from '../features/notifications/rules.ts';
import { FEATURE_SETTINGS, FOUND_KINDS } from './features.ts';

/** What features add to the configuration of workers and commands. `serve` reads no file, so it needs the settings alone. */
export const FEATURE_CONFIG: FeatureConfig = {
  settings: FEATURE_SETTINGS,
  sections: [{ name: ALERT_SECTION.name, shape: ALERT_SECTION.shape(Object.keys(FOUND_KINDS)) }],
  problems: alertProblems,
};
