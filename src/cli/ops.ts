import type { Queue } from 'bullmq';
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import type { Disposer } from '../app/disposer.ts';
import type { Configured } from '../config/settings.ts';
import type { Environment } from '../config/source-config.ts';
import type { Store } from '../db/connection/connect.ts';
import type { ConsoleDependencies } from '../features/console/routes/routes.ts';
import { listOperators } from '../features/operators/db/operators.ts';
import type { OidcSettings } from '../features/operators/oidc.ts';
import { exportMetrics } from '../ops/collect.ts';
import { buildOps } from '../ops/server.ts';
import { answerParent } from '../processes/ipc.ts';

/** Set by `up`, which shows the operators' pages of all its processes itself. */
export const OPS_BY_PARENT = 'FLEETBOOK_OPS_BY_PARENT';

/** Metrics as they are shown, and as they go to the process that shows them. */
export interface OfferedMetrics {
  metrics(): Promise<string>;
  exported(): Promise<unknown>;
}

/** What is there for people, beside metrics and queues. */
export interface OfPeople {
  /** In the worker's role: lets operators sign in. */
  readonly store: Store;
  readonly console?: () => ConsoleDependencies;
  readonly oidc?: OidcSettings | undefined;
}

/** Of this process alone. */
export const ownMetrics = (registry: Registry): OfferedMetrics => ({
  metrics: () => registry.metrics(),
  exported: () => exportMetrics(registry),
});

/**
 * Listens on OPS_PORT, or leaves that to the `up` that started this process and answers its questions.
 * @param people without it OPS_TOKEN alone opens, and there is no console
 */
export async function offerOps(
  config: Configured,
  env: Environment,
  offered: OfferedMetrics,
  queues: readonly Queue[],
  closing: Disposer,
  logger: Logger,
  people?: OfPeople,
): Promise<void> {
  if (env[OPS_BY_PARENT] === '1') {
    answerParent('metrics', () => offered.exported());
    return;
  }
  const token = config.settings.OPS_TOKEN;
  const url = await listenOps(config, token, () => offered.metrics(), queues, closing, logger, people);
  // A token of our own making would have to be logged, and logs are read by more people than these pages are for.
  const isOpen = token !== undefined || people !== undefined;
  if (!isOpen) logger.info({ url }, 'operators’ pages are closed: OPS_TOKEN is not set');
  else logger.info({ url }, 'operators’ pages');
  if (people && !(await canSignIn(people)))
    logger.info(
      'no operator can sign in yet; create one: fleetbook operator create <name> --role admin, or issue a token to one that exists: fleetbook operator token <name>',
    );
}

/** True if an operator has a good token, or OpenID Connect is configured. */
async function canSignIn({ store, oidc }: OfPeople): Promise<boolean> {
  if (oidc !== undefined) return true;
  const operators = await listOperators(store.db);
  return operators.some(({ disabledAt, tokens }) => disabledAt === null && tokens > 0);
}

export async function listenOps(
  { settings }: Configured,
  token: string | undefined,
  metrics: () => Promise<string>,
  queues: readonly Queue[],
  closing: Disposer,
  logger: Logger,
  people?: OfPeople,
): Promise<string> {
  const operators = people && { store: people.store, oidc: people.oidc };
  const console = people?.console?.();
  const ops = await buildOps({
    token,
    metrics,
    queues,
    operators,
    console,
    logger,
    trustProxy: settings.TRUST_PROXY,
  });
  closing.defer(() => ops.close());
  return ops.listen({ host: settings.OPS_HOST, port: settings.OPS_PORT });
}
