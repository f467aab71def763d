import type { Logger } from 'pino';
import { CommandFailure } from '../../cli/terminal/failure.ts';
import { stopSignal } from '../../cli/terminal/terminal.ts';
import type { Environment } from '../../config/config.ts';
import { VERSION } from '../../config/package.ts';
import { BadSetting, type Configured, readSettings, SETTINGS } from '../../config/settings.ts';
import { openTracing } from '../../features/tracing/tracing.ts';
import { buildApp } from '../../http/app.ts';
import { exportMetrics, metricsInSlices, type ProcessExport } from '../../ops/merge-metrics.ts';
import { apiMetrics } from '../../ops/metrics.ts';
import { RequestCounts } from '../../ops/request-counts.ts';
import { isSharing } from '../../processes/child-process.ts';
import { answerParent, reportFailure, reportReady } from '../../processes/ipc.ts';
import { Disposer } from '../disposer.ts';
import { FEATURE_SETTINGS } from '../features.ts';
import { inLogContext } from '../log-context.ts';
import { openLogger } from '../logger.ts';
import { openFilesProblem } from '../open-files.ts';
import { apiOptions, composeReader } from '../reader.ts';
import { canSharePort, listen } from './listen.ts';
import { offerOps, ownMetrics } from './ops.ts';
import { serveByProcesses } from './serve-processes.ts';

/** @throws BadSetting; CommandFailure if it cannot listen on the port */
export async function serve(env: Environment, options: { processes?: string } = {}): Promise<void> {
  const stop = stopSignal();
  const given = { ...env, PROCESSES: options.processes ?? env.PROCESSES };
  if (options.processes !== undefined) checkProcesses(options.processes);
  const config = { settings: readSettings(given, FEATURE_SETTINGS) };
  if (isSharing()) await serveAsOneOfSeveral(config, env, stop);
  else if (config.settings.PROCESSES > 1) {
    const logger = openLogger(config.settings, 'serve');
    await serveByProcesses(config, given, stop, logger);
  } else await serveAlone(config, env, stop);
}

async function serveAlone(config: Configured, env: Environment, stop: Promise<string>): Promise<void> {
  const { settings } = config;
  const logger = openLogger(settings, 'serve');
  await using closing = new Disposer();
  const { app, metrics } = await openApi(config, env, closing, logger);
  const port = await listen(app, settings);
  const { registry } = metrics;
  const offered = { ...ownMetrics(registry), metrics: () => metricsInSlices(registry) };
  await offerOps({ config, env, logger, closing, queues: [] }, offered);
  reportReady({ port });
  logger.info({ host: settings.HOST, port }, 'serving');
  logger.info({ why: await stop }, 'serving stops');
}

/** The primary process serves the operators' pages, and reports why this process cannot start. */
async function serveAsOneOfSeveral(
  config: Configured,
  env: Environment,
  stop: Promise<string>,
): Promise<void> {
  const logger = openLogger(config.settings, 'serve');
  try {
    await using closing = new Disposer();
    const { app, metrics } = await openApi(config, env, closing, logger);
    answerParent(
      async (): Promise<ProcessExport> => ({
        pid: process.pid,
        metrics: await exportMetrics(metrics.registry),
      }),
    );
    reportReady({ port: await listen(app, config.settings, canSharePort) });
    logger.debug({ why: await stop }, 'serving stops');
  } catch (error) {
    if (!(error instanceof CommandFailure || error instanceof BadSetting)) throw error;
    await reportFailure(error.message);
    process.exitCode = 1;
  }
}

async function openApi(config: Configured, env: Environment, closing: Disposer, logger: Logger) {
  const tracing = await openTracing(env, 'serve');
  if (tracing) closing.use(tracing);
  const counts = new RequestCounts();
  const reader = closing.use(await composeReader(config, logger, (kind) => metrics.unusable(kind)));
  const metrics = apiMetrics(counts);
  const problem = openFilesProblem(config.settings);
  if (problem) logger.warn({ connections: problem.connections }, `${problem.what}; ${problem.remedy}`);
  reader.addMetrics(metrics.registry);
  const app = buildApp({
    ...reader,
    logger,
    version: VERSION,
    ...apiOptions({
      ...config.settings,
      ...(problem && { MAX_CONNECTIONS: problem.connections }),
    }),
    observe: counts.add,
    inLogContext,
  });
  closing.defer(() => app.close());
  tracing?.traceRequests(app);
  return { app, metrics };
}

/** @throws BadSetting that names the option and not PROCESSES */
function checkProcesses(value: string): void {
  try {
    SETTINGS.PROCESSES.read(value);
  } catch (error) {
    if (!(error instanceof BadSetting)) throw error;
    throw new BadSetting(`--processes ${error.message}; it is ${JSON.stringify(value)}`);
  }
}
