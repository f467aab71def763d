import { join } from 'node:path';
import type { Logger } from 'pino';
import { CommandFailure } from '../../cli/terminal/failure.ts';
import type { Environment } from '../../config/config.ts';
import { programScript } from '../../config/package.ts';
import type { Configured } from '../../config/settings.ts';
import { withTimeout } from '../../domain/clock.ts';
import { exportMetrics, joinMetrics, mergeMetrics, ProcessExports } from '../../ops/merge-metrics.ts';
import { primaryMetrics } from '../../ops/metrics.ts';
import { startSharing } from '../../processes/child-process.ts';
import { reportReady } from '../../processes/ipc.ts';
import { HopelessStart, Supervisor } from '../../processes/supervisor.ts';
import { Disposer } from '../disposer.ts';
import { API, checkPortsAreFree } from './listen.ts';
import { offerOps } from './ops.ts';

/** Requests get 10 s to end and the stores 3 s. A service manager waits 20 s. */
const STOP_WITHIN_MS = 16_000;
/** A blocked process must not delay a scrape. */
const METRICS_WITHIN_MS = 1000;
/** How long readiness waits for the other processes after the first one serves (ms). */
const ALL_READY_WITHIN_MS = 10_000;

/** Serves until `stop`, and replaces processes that end. @throws CommandFailure if the first one cannot serve */
export async function serveByProcesses(
  config: Configured,
  env: Environment,
  stop: Promise<string>,
  logger: Logger,
): Promise<void> {
  const count = config.settings.PROCESSES;
  await checkPortsAreFree(config.settings, [API]);
  const names = Array.from({ length: count }, (_, i) => `serve ${i + 1}`);
  await using closing = new Disposer();
  const processes = closing.use(
    new Supervisor({
      log: logger,
      stopWithinMs: STOP_WITHIN_MS,
      stopTogether: true,
      onRestart: () => metrics.replaced(),
    }),
  );
  const metrics = primaryMetrics(count, () => processes.ready);
  const exports = new ProcessExports();
  const collected = async (): Promise<readonly unknown[]> => {
    const answers = await processes.metrics(METRICS_WITHIN_MS);
    const running = new Set(names.flatMap((name) => processes.pidOf(name) ?? []));
    return [await exportMetrics(metrics.registry), ...(await exports.add(answers, running))];
  };
  // Read at every start: all processes listen on the port of the first one, also if PORT is 0.
  const childEnv: NodeJS.ProcessEnv = { ...env };
  const dumps = config.settings.SNAPSHOT_DIR;
  const begin = (name: string) => () => {
    // Each process has another memory, and so another dump.
    const own = dumps === undefined ? {} : { SNAPSHOT_DIR: join(dumps, name.replace(' ', '-')) };
    return startSharing({ script: programScript(), args: ['serve'], env: { ...childEnv, ...own } });
  };

  const [first = '', ...others] = names;
  const serving = (async () => {
    const details = await processes.start(first, begin(first));
    childEnv.PORT = String(details.port);
    // The settings work. A later failure to start is temporary, so attempts have no limit.
    const all = Promise.all(
      others.map((name) => processes.start(name, begin(name), Number.POSITIVE_INFINITY)),
    );
    all.catch(() => {});
    await withTimeout(ALL_READY_WITHIN_MS, all);
    await offerOps(
      { config, env, logger, closing, queues: [] },
      {
        metrics: async () => mergeMetrics(await collected()),
        exported: async () => joinMetrics(await collected()),
      },
    );
    reportReady(details);
    logger.info({ host: config.settings.HOST, ...details, processes: processes.ready }, 'serving');
  })();
  // A stop during the start is not a failure.
  serving.catch(() => {});
  const why = await Promise.race([stop, serving.then(() => stop, refused)]);
  logger.info({ why }, 'serving stops');
}

function refused(error: unknown): never {
  if (error instanceof HopelessStart) throw new CommandFailure(error.message);
  if (error instanceof Error) throw new CommandFailure(`serving could not start: ${error.message}`);
  throw error;
}
