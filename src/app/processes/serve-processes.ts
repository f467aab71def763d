import type { Logger } from 'pino';
import { CommandFailure } from '../../cli/terminal/failure.ts';
import type { Environment } from '../../config/config.ts';
import { programScript } from '../../config/package.ts';
import type { Configured } from '../../config/settings.ts';
import { withTimeout } from '../../lib/timeout.ts';
import { exportMetrics, joinMetrics, mergeMetrics } from '../../ops/collect.ts';
import { primaryMetrics } from '../../ops/metrics.ts';
import { ProcessExports } from '../../ops/process-exports.ts';
import { startSharing } from '../../processes/child-process.ts';
import { reportReady } from '../../processes/ipc.ts';
import { HopelessStart, Supervisor } from '../../processes/supervisor.ts';
import { Disposer } from '../disposer.ts';
import { API, checkPortsAreFree } from './listen.ts';
import { offerOps } from './ops.ts';

/** Requests get 10 s to end and the stores 3 s; whoever stops us waits 20 s. */
const STOP_WITHIN_MS = 16_000;
/** A process answers within milliseconds; one that is stuck must not hold up a scrape. */
const METRICS_WITHIN_MS = 1000;
/** How long readiness waits for all of them, once the first one serves. */
const ALL_READY_WITHIN_MS = 10_000;

/**
 * Serves by several processes on one port until `stop`: one that ends is replaced, after a pause that grows when it
 * ends again and again. The first one shows whether serving works at all.
 * @throws CommandFailure when it does not
 */
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
  /** Of all processes, ours included. */
  const collected = async (): Promise<readonly unknown[]> => {
    const answers = await processes.askAll('metrics', METRICS_WITHIN_MS);
    const running = new Set(names.flatMap((name) => processes.pidOf(name) ?? []));
    return [await exportMetrics(metrics.registry), ...(await exports.look(answers, running))];
  };
  // Read at every start: it is to be the port that the first one got, also where any one would have done.
  const childEnv: NodeJS.ProcessEnv = { ...env };
  const begin = () => startSharing({ script: programScript(), args: ['serve'], env: childEnv });

  const [first = '', ...others] = names;
  const serving = (async () => {
    const details = await processes.start(first, begin);
    childEnv.PORT = String(details.port);
    // From here on it is known to work: what keeps another one from starting passes.
    const all = Promise.all(others.map((name) => processes.start(name, begin, Number.POSITIVE_INFINITY)));
    all.catch(() => {});
    await withTimeout(ALL_READY_WITHIN_MS, all);
    await offerOps(
      config,
      env,
      {
        metrics: async () => mergeMetrics(await collected()),
        exported: async () => joinMetrics(await collected()),
      },
      [],
      closing,
      logger,
    );
    reportReady(details);
    logger.info({ host: config.settings.HOST, ...details, processes: processes.ready }, 'serving');
  })();
  // Stopped while they start: those that run are stopped, and nothing is said to have failed.
  serving.catch(() => {});
  const why = await Promise.race([stop, serving.then(() => stop, refused)]);
  logger.info({ why }, 'serving stops');
}

function refused(error: unknown): never {
  if (error instanceof HopelessStart) throw new CommandFailure(error.message);
  if (error instanceof Error) throw new CommandFailure(`serving could not start: ${error.message}`);
  throw error;
}
