/** The features of this build. To remove one, delete its folder and its line here. */
import { consoleFeature } from '../features/console/index.ts';
import { exportsFeature } from '../features/exports/index.ts';
import { operatorsFeature } from '../features/operators/index.ts';
import type { Feature } from './feature.ts';

export const FEATURES: readonly Feature[] = [exportsFeature, operatorsFeature, consoleFeature];
