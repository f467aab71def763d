import { executionAsyncResource } from 'node:async_hooks';
import { setTimeout as pause } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import { CommandFailure } from '../../cli/terminal/failure.ts';
import { stopSignal } from '../../cli/terminal/terminal.ts';
import type { Environment } from '../../config/config.ts';
import { VERSION } from '../../config/package.ts';
import { BadSetting, type Configured, readSettings, SETTINGS } from '../../config/settings.ts';
import { withTimeout } from '../../domain/clock.ts';
import { openTracing } from '../../features/tracing/tracing.ts';
import { type Api, buildApp } from '../../http/app.ts';
import type { ProcessExport } from '../../ops/merge-metrics.ts';
import { RequestCounts } from '../../ops/request-counts.ts';
import { isSharing } from '../../processes/child-process.ts';
import { answerParent, reportFailure, reportReady } from '../../processes/ipc.ts';
import { Disposer } from '../disposer.ts';
import { FEATURE_SETTINGS } from '../features.ts';
import { inLogContext } from '../log-context.ts';
import { openLogger } from '../logger.ts';
import { openFilesProblem } from '../open-files.ts';
import { apiOptions, composeReader, type Reader } from '../reader.ts';
import { canSharePort, listen } from './listen.ts';

/**
 * Listens as soon as it can answer the operations of the contract, and loads everything else then.
 * @throws BadSetting; CommandFailure if it cannot listen on the port
 */
export async function serve(env: Environment, options: { processes?: string } = {}): Promise<void> {
  keepTickShape();
  const stop = stopSignal();
  const given = { ...env, PROCESSES: options.processes ?? env.PROCESSES };
  if (options.processes !== undefined) checkProcesses(options.processes);
  const config = { settings: readSettings(given, FEATURE_SETTINGS) };
  if (isSharing()) await serveAsOneOfSeveral(config, env, stop);
  else if (config.settings.PROCESSES > 1) {
    const logger = openLogger(config.settings, 'serve');
    const { serveByProcesses } = await import('./serve-processes.ts');
    await serveByProcesses(config, given, stop, logger);
  } else await serveAlone(config, env, stop);
}

async function serveAlone(config: Configured, env: Environment, stop: Promise<string>): Promise<void> {
  const { settings } = config;
  const logger = openLogger(settings, 'serve');
  await using closing = new Disposer();
  const { app, loadRest } = await openApi(config, env, closing, logger);
  const port = await listen(app, settings);
  const registry = await loadRest();
  const { offerOps } = await import('./ops.ts');
  const { exportInSlices, metricsInSlices } = await import('../../ops/merge-metrics.ts');
  const offered = {
    metrics: () => metricsInSlices(registry),
    exported: () => exportInSlices(registry),
  };
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
    const { app, loadRest } = await openApi(config, env, closing, logger);
    const port = await listen(app, config.settings, canSharePort);
    const registry = await loadRest();
    const { exportInSlices } = await import('../../ops/merge-metrics.ts');
    answerParent(
      async (): Promise<ProcessExport> => ({ pid: process.pid, metrics: await exportInSlices(registry) }),
    );
    reportReady({ port });
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
  const reader = closing.use(await composeReader(config, logger, counts.addUnusable));
  const problem = openFilesProblem(config.settings);
  if (problem) logger.warn({ connections: problem.connections }, `${problem.what}; ${problem.remedy}`);
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
    ...(tracing && { addHooks: tracing.traceRequests }),
  });
  closing.defer(() => app.close());
  return { app, loadRest: () => loadRest(app, reader, counts) };
}

/** First answers wait at most this time (ms) for servers, and then take less than the pause. */
const SERVERS_WITHIN_MS = 1000;
const FIRST_ANSWERS_MS = 100;

/** Loads the features and the metrics after the first answers: a module blocks the process while it is loaded. */
async function loadRest(app: Api, reader: Reader, counts: RequestCounts): Promise<Registry> {
  await withTimeout(SERVERS_WITHIN_MS, reader.readiness());
  await pause(FIRST_ANSWERS_MS);
  await app.loadRoutes();
  const { apiMetrics } = await import('../../ops/metrics.ts');
  const { registry } = apiMetrics(counts);
  await reader.addMetrics(registry);
  return registry;
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

const kept = new Set<object>();

/**
 * Keeps one of the objects of `process.nextTick`. After collections without such an object, V8 has forgotten their shape, and each later
 * one takes four times as long (0.3 µs). An answer makes two.
 */
function keepTickShape(): void {
  process.nextTick(() => {
    kept.add(executionAsyncResource());
  });
}
