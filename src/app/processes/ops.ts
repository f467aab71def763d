import type { Registry } from 'prom-client';
import type { Configured } from '../../config/settings.ts';
import type { Database } from '../../db/connection/connect.ts';
import type { OpsPart } from '../../ops/feature-routes.ts';
import { exportMetrics } from '../../ops/merge-metrics.ts';
import { buildOps } from '../../ops/server.ts';
import { answerParent } from '../../processes/ipc.ts';
import type { OpsContext } from '../feature.ts';
import { FEATURES, FOUND_KINDS } from '../features.ts';
import { composeWriter, type Writer } from '../writer.ts';

/** Set by `up`, which serves the operators' pages of all its processes. */
export const OPS_BY_PARENT = 'FLEETBOOK_OPS_BY_PARENT';

/** Metrics in Prometheus' text format, and in the format that `up` merges. */
export interface OfferedMetrics {
  metrics(): Promise<string>;
  exported(): Promise<unknown>;
}

export const ownMetrics = (registry: Registry): OfferedMetrics => ({
  metrics: () => registry.metrics(),
  exported: () => exportMetrics(registry),
});

/** A process that offers the operators' pages. */
interface OpsProcess extends Pick<OpsContext, 'env' | 'logger' | 'closing' | 'queues'> {
  readonly config: Configured;
}

/** The features' parts of the operators' server. A reader has none: OPS_TOKEN alone opens its pages. */
export interface OpenedParts {
  readonly parts: readonly OpsPart[];
  /** In the worker's role, for rows of the audit log. */
  readonly db: Database;
}

export async function openParts(given: Omit<OpsContext, 'openWriter' | 'kinds'>): Promise<OpenedParts> {
  const { config, logger, closing, store } = given;
  let writer: Writer | undefined;
  const openWriter = () => {
    writer ??= closing.use(composeWriter(config, logger));
    return writer;
  };
  const context = { ...given, openWriter, kinds: FOUND_KINDS };
  const opened = FEATURES.flatMap(({ operations }) => operations?.(context) ?? []);
  return { parts: await Promise.all(opened), db: store.db };
}

/** Listens on OPS_PORT. If `up` started this process, `up` listens instead and requests the metrics by IPC. */
export async function offerOps(
  running: OpsProcess,
  { metrics, exported }: OfferedMetrics,
  open?: () => Promise<OpenedParts>,
): Promise<void> {
  const { config, env, logger } = running;
  if (env[OPS_BY_PARENT] === '1') {
    answerParent(exported);
    return;
  }
  const opened = await open?.();
  const url = await listenOps(running, metrics, opened);
  const parts = opened?.parts ?? [];
  // No token is generated: it would have to be logged, and more people read logs than may see these pages.
  const isOpen = config.settings.OPS_TOKEN !== undefined || parts.some(({ addSignIn }) => addSignIn);
  logger.info({ url }, isOpen ? 'operators’ pages' : 'operators’ pages are closed: OPS_TOKEN is not set');
  for (const { advice } of parts) {
    const line = await advice?.();
    if (line !== undefined) logger.info(line);
  }
}

export async function listenOps(
  { config: { settings }, closing, logger, queues }: Omit<OpsProcess, 'env'>,
  metrics: () => Promise<string>,
  opened?: OpenedParts,
): Promise<string> {
  const { OPS_TOKEN: token, TRUST_PROXY: trustProxy } = settings;
  const ops = await buildOps({ token, metrics, queues, ...opened, logger, trustProxy });
  closing.defer(() => ops.close());
  return ops.listen({ host: settings.OPS_HOST, port: settings.OPS_PORT });
}
