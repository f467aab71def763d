import { composeWorker, type Worker } from '../app/worker.ts';
import { type Config, type Environment, readConfig } from '../config/config.ts';
import { loggerOf, tellOfNewLineage } from './open-writer.ts';

/** What a command needs that runs a source, or applies what one has brought: the whole configuration, opened. */
export function openWorker(env: Environment): { config: Config; worker: Worker } {
  const config = readConfig(env);
  const onNewLineage = tellOfNewLineage;
  return { config, worker: composeWorker(config, loggerOf(env), { onNewLineage, decidesCurrency: false }) };
}
