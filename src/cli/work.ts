import type { Logger } from 'pino';
import { startWorker } from '../../workers/main.ts';
import { databaseUrl } from '../app/connections.ts';
import { Closing } from '../app/disposer.ts';
import { openLogger } from '../app/logger.ts';
import { type Config, type Environment, readConfig } from '../config/config.ts';
import { openStore, type Sql } from '../db/connect.ts';
import { claimContent } from '../db/queries/content.ts';
import { registerSource } from '../db/queries/runs.ts';
import { sourceStatus } from '../db/queries/status.ts';
import { workerMetrics } from '../ops/metrics.ts';
import { reportReady } from '../processes/ipc.ts';
import { offerOps, ownMetrics } from './ops.ts';
import { stopSignal } from './stop-signal.ts';
import { notConfigured } from './unconfigured.ts';

export async function work(env: Environment): Promise<void> {
  const stop = stopSignal();
  const config = readConfig(env);
  const logger = openLogger(config.settings, 'work');
  await using closing = new Closing();
  const store = closing.use(openStore({ url: databaseUrl(config), role: 'worker', connections: 1 }));
  await claimContent(store.sql, config.settings.FLEETBOOK_CONTENT);
  await registerSources(store.sql, config, logger);
  const metrics = workerMetrics(
    store.sql,
    config.sources.map(({ id }) => id),
  );
  const worker = closing.use(await startWorker(config, logger, metrics));
  await offerOps(config, ownMetrics(metrics.registry), worker.queues.all, closing, logger);
  reportReady();
  logger.info({ why: await stop }, 'worker stops');
}

/**
 * Makes every configured source known, so that it ages from now on though it may never succeed, and names those that are
 * stored and not configured: their data is served, and nobody reads it any more.
 */
async function registerSources(sql: Sql, { sources }: Config, logger: Logger): Promise<void> {
  for (const { id, kind, adapter } of sources) await registerSource(sql, { id, kind, adapter: adapter.id });
  const configured = new Set(sources.map(({ id }) => id));
  for (const status of await sourceStatus(sql)) {
    if (!configured.has(status.id) && status.retiredAt === null)
      logger.warn(notConfigured(status, new Date()));
  }
}
