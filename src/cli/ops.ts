import { randomBytes } from 'node:crypto';
import type { Queue } from 'bullmq';
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import type { Closing } from '../closing.ts';
import type { Config } from '../config.ts';
import { answerParent } from '../local/parent.ts';
import { exportMetrics } from '../ops/collect.ts';
import { buildOps } from '../ops/server.ts';

/** Set by `up`, which shows the operators' pages of all its processes itself. */
export const OPS_BY_PARENT = 'FLEETBOOK_OPS_BY_PARENT';

/** What the metrics of a process are asked by. */
export const METRICS = 'metrics';

/** Listens on OPS_PORT, or leaves that to the `up` that started this process and answers its questions. */
export async function offerOps(
  config: Config,
  registry: Registry,
  queues: readonly Queue[],
  closing: Closing,
  logger: Logger,
): Promise<void> {
  if (process.env[OPS_BY_PARENT] === '1') {
    answerParent(METRICS, () => exportMetrics(registry));
    return;
  }
  const url = await listenOps(config, opsToken(config), () => registry.metrics(), queues, closing);
  logger.info({ url }, 'operators’ pages');
}

export async function listenOps(
  { settings }: Config,
  token: string,
  metrics: () => Promise<string>,
  queues: readonly Queue[],
  closing: Closing,
): Promise<string> {
  const ops = await buildOps({ token, metrics, queues });
  closing.defer(() => ops.close());
  return ops.listen({ host: settings.OPS_HOST, port: settings.OPS_PORT });
}

/** The configured token; else a new one, which is said once, since nobody could get in otherwise. */
function opsToken({ settings }: Config): string {
  if (settings.OPS_TOKEN) return settings.OPS_TOKEN;
  const token = newOpsToken();
  console.error(`OPS_TOKEN is not set; until the next start it is ${token}`);
  return token;
}

export function newOpsToken(): string {
  return randomBytes(18).toString('base64url');
}
