import type { Queue } from 'bullmq';
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import type { Configured } from '../app/connections.ts';
import type { Closing } from '../app/disposer.ts';
import { exportMetrics } from '../ops/collect.ts';
import { answerParent } from '../processes/ipc.ts';
import { METRICS } from './questions.ts';

/** Set by `up`, which shows the operators' pages of all its processes itself. */
export const OPS_BY_PARENT = 'FLEETBOOK_OPS_BY_PARENT';

/** Metrics as they are shown, and as they go to the process that shows them. */
export interface OfferedMetrics {
  metrics(): Promise<string>;
  exported(): Promise<unknown>;
}

/** Of this process alone. */
export const ownMetrics = (registry: Registry): OfferedMetrics => ({
  metrics: () => registry.metrics(),
  exported: () => exportMetrics(registry),
});

/** Listens on OPS_PORT, or leaves that to the `up` that started this process and answers its questions. */
export async function offerOps(
  config: Configured,
  offered: OfferedMetrics,
  queues: readonly Queue[],
  closing: Closing,
  logger: Logger,
): Promise<void> {
  if (process.env[OPS_BY_PARENT] === '1') {
    answerParent(METRICS, () => offered.exported());
    return;
  }
  const token = config.settings.OPS_TOKEN;
  const url = await listenOps(config, token, () => offered.metrics(), queues, closing);
  // A token of our own making would have to be logged, and logs are read by more people than these pages are for.
  if (token === undefined) logger.info({ url }, 'operators’ pages are closed: OPS_TOKEN is not set');
  else logger.info({ url }, 'operators’ pages');
}

export async function listenOps(
  { settings }: Configured,
  token: string | undefined,
  metrics: () => Promise<string>,
  queues: readonly Queue[],
  closing: Closing,
): Promise<string> {
  // Loaded late: what is served must not wait for it.
  const { buildOps } = await import('../ops/server.ts');
  const ops = await buildOps({ token, metrics, queues });
  closing.defer(() => ops.close());
  return ops.listen({ host: settings.OPS_HOST, port: settings.OPS_PORT });
}
