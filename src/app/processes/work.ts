import type { Logger } from 'pino';
import { startWorker } from '../../../workers/main.ts';
import { startWatchdog } from '../../../workers/watchdog.ts';
import { disabledNote, notConfigured } from '../../cli/terminal/source-notes.ts';
import { stopSignal } from '../../cli/terminal/terminal.ts';
import { type Config, type Environment, readConfig } from '../../config/config.ts';
import { databaseUrls } from '../../config/settings.ts';
import { openStore, type Store } from '../../db/connection/connect.ts';
import { claimContent, sourceStatus } from '../../db/sources.ts';
import { openTracing } from '../../features/tracing/tracing.ts';
import { workerMetrics } from '../../ops/metrics.ts';
import { addQueueGauges } from '../../ops/queue-gauges.ts';
import { reportReady } from '../../processes/ipc.ts';
import { registerSource } from '../../sync/runs/run.ts';
import { refuseUnsuitableWriter } from '../check-database.ts';
import { Disposer } from '../disposer.ts';
import { FEATURE_CONFIG } from '../feature-config.ts';
import { openLogger } from '../logger.ts';
import { offerOps, openParts, ownMetrics } from './ops.ts';

export async function work(env: Environment): Promise<void> {
  const stop = stopSignal();
  const config = readConfig(env, FEATURE_CONFIG);
  const logger = openLogger(config.settings, 'work');
  await using closing = new Disposer();
  closing.use(startWatchdog(config.settings.BLOCKED_LIMIT));
  const tracing = await openTracing(env, 'work');
  if (tracing) closing.use(tracing);
  const store = closing.use(openStore({ ...databaseUrls(config), role: 'worker', connections: 2 }));
  await refuseUnsuitableWriter(store, config, logger);
  await claimContent(store.db, config.content);
  await registerSources(store, config, logger);
  const metrics = workerMetrics(store.db, config.sources);
  const worker = closing.use(
    await startWorker(config, logger, { ...metrics, telemetry: tracing?.telemetry }),
  );
  addQueueGauges(metrics.registry, worker.queues.all);
  const running = { config, env, logger, closing, queues: worker.queues.all };
  await offerOps(running, ownMetrics(metrics.registry), () => openParts({ ...running, store }));
  reportReady();
  logger.info({ why: await stop }, 'worker stops');
}

/** Registers sources, so that their age counts even if they never succeed. Warns of stored, unconfigured ones. */
async function registerSources({ db }: Store, { sources }: Config, logger: Logger): Promise<void> {
  for (const { id, kind, adapter } of sources) await registerSource(db, { id, kind, adapter: adapter.id });
  const configured = new Set(sources.map(({ id }) => id));
  for (const status of await sourceStatus(db)) {
    if (status.disabled) logger.warn(disabledNote(status.id, status.disabled, new Date()));
    if (!configured.has(status.id) && status.retiredAt === null)
      logger.warn(notConfigured(status, new Date()));
  }
}
