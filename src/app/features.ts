/** The features of this build. To remove one, delete its folder and its line here. */
import { alertsFeature } from '../features/alerts/index.ts';
import { exportsFeature } from '../features/exports/index.ts';
import type { Feature } from './feature.ts';

export const FEATURES: readonly Feature[] = [exportsFeature, alertsFeature];
