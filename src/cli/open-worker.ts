import { FEATURE_CONFIG } from '../app/feature-settings.ts';
import { composeWorker, type Worker } from '../app/worker.ts';
import { type Config, type Environment, readConfig } from '../config/config.ts';
import { loggerOf, tellOfNewLineage } from './terminal/open.ts';

/** The whole configuration, to run a source or to apply what one has brought. */
export function openWorker(env: Environment): { config: Config; worker: Worker } {
  const config = readConfig(env, FEATURE_CONFIG);
  const options = { onNewLineage: tellOfNewLineage, decidesCurrency: false };
  return { config, worker: composeWorker(config, loggerOf(env), options) };
}
