import { startWorker } from '../../workers/main.ts';
import { Closing } from '../closing.ts';
import { type Environment, readConfig } from '../config.ts';
import { databaseUrl } from '../connections.ts';
import { reportReady } from '../local/parent.ts';
import { openLogger } from '../log.ts';
import { workerMetrics } from '../ops/metrics.ts';
import { openStore } from '../store/connect.ts';
import { claimContent } from '../store/content.ts';
import { offerOps, ownMetrics } from './ops.ts';
import { stopSignal } from './stop-signal.ts';

export async function work(env: Environment): Promise<void> {
  const stop = stopSignal();
  const config = readConfig(env);
  const logger = openLogger(config.settings, 'work');
  await using closing = new Closing();
  const store = closing.use(openStore({ url: databaseUrl(config), role: 'worker', connections: 1 }));
  await claimContent(store.sql, config.settings.FLEETBOOK_CONTENT);
  const metrics = workerMetrics(store.sql);
  const worker = closing.use(await startWorker(config, logger, metrics));
  await offerOps(config, ownMetrics(metrics.registry), worker.queues.all, closing, logger);
  reportReady();
  logger.info({ why: await stop }, 'worker stops');
}
