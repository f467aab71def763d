import type { Environment } from '../../config/source-config.ts';
import { openLog, printNewLineage, publishNow } from './open.ts';
import { type DeciderOptions, decider } from './options.ts';

/** Reads the whole configuration, and opens what runs a source or stores its batches. Its parts are loaded when it is opened. */
export async function openWorker(env: Environment, options: DeciderOptions) {
  const [{ readConfig }, { FEATURE_CONFIG }, { composeWorker }] = await Promise.all([
    import('../../config/config.ts'),
    import('../../app/feature-config.ts'),
    import('../../app/worker.ts'),
  ]);
  const config = readConfig(env, FEATURE_CONFIG);
  const by = decider(config, options);
  const observers = { onNewLineage: printNewLineage, decidesCurrency: false };
  const worker = composeWorker(config, await openLog(env), observers);
  return { ...worker, config, by, publish: () => publishNow(worker) };
}

export type OpenWorker = Awaited<ReturnType<typeof openWorker>>;
