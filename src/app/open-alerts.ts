import type { OpenAlerts } from './feature.ts';
import { FEATURES } from './features.ts';

/** Reads open alerts; undefined in a build without the feature. */
export const openAlerts: OpenAlerts | undefined = FEATURES.find((feature) => feature.openAlerts)?.openAlerts;
