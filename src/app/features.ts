/** The features of this build. To remove one, delete its folder and its line here. */

import { alertsFeature } from '../features/alerts/index.ts';
import { consoleFeature } from '../features/console/index.ts';
import { diskCopyFeature } from '../features/disk-copy/index.ts';
import { exportsFeature } from '../features/exports/index.ts';
import { feedFeature } from '../features/feed/index.ts';
import { operatorsFeature } from '../features/operators/index.ts';
import { replicaFeature } from '../features/replica/index.ts';
import { searchFeature } from '../features/search/index.ts';
import { tracingFeature } from '../features/tracing/index.ts';
import type { Feature } from './feature.ts';

export const FEATURES: readonly Feature[] = [
  searchFeature,
  feedFeature,
  diskCopyFeature,
  replicaFeature,
  exportsFeature,
  alertsFeature,
  tracingFeature,
  operatorsFeature,
  consoleFeature,
];
