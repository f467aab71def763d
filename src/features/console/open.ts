/** Puts the console together: what it reads with, and what the configuration says of the sources. */
import type { Queue } from 'bullmq';
import type { Logger } from 'pino';
import type { SyncJob } from '../../../workers/queues.ts';
import { acknowledgedAlerts } from '../../app/acknowledged-alerts.ts';
import type { Disposer } from '../../app/disposer.ts';
import { FOUND_KINDS } from '../../app/feature-settings.ts';
import { FEATURES } from '../../app/features.ts';
import type { Config, Environment } from '../../config/config.ts';
import { inPackage } from '../../config/package.ts';
import { pricedSource } from '../../config/priced-source.ts';
import { databaseUrl } from '../../config/settings.ts';
import { openStore } from '../../db/connection/connect.ts';
import type { PricedSource } from '../../domain/needed-rates.ts';
import { nextSlot } from '../../domain/slots.ts';
import { administrationActions, heldActions, runActions, sourceActions, writer } from './actions.ts';
import type { ConsoleSource } from './routes/overview.ts';
import type { ConsoleDependencies } from './routes/routes.ts';

/** Whoever looks at a page does not wait for longer. */
const STATEMENT_TIMEOUT_MS = 15_000;

/** What it opens, `closing` closes. @param env where the settings of `config` come from */
export function openConsole(
  config: Config,
  sync: Queue<SyncJob>,
  closing: Disposer,
  logger: Logger,
  env: Environment,
): ConsoleDependencies {
  const reads = closing.use(
    openStore({
      url: databaseUrl(config),
      role: 'worker',
      connections: 4,
      statementTimeoutMs: STATEMENT_TIMEOUT_MS,
      applicationName: 'fleetbook console',
    }),
  );
  const worker = writer(config, closing, logger);
  return {
    sql: reads.sql,
    db: reads.db,
    sources: config.sources.map((source) => {
      const { schedule, maxAge } = source;
      return consoleSource({ ...pricedSource(source, config.settings), schedule, maxAge });
    }),
    folder: inPackage('dist', 'console'),
    held: heldActions(config, worker),
    parts: FEATURES.flatMap(
      ({ operations }) => operations?.({ config, store: reads, kinds: FOUND_KINDS }) ?? [],
    ),
    acknowledged: acknowledgedAlerts,
    administration: administrationActions(worker),
    runs: runActions(config, sync, worker),
    sourceActions: sourceActions(config, env, worker),
  };
}

export function consoleSource({
  schedule,
  maxAge,
  ...source
}: PricedSource & Pick<Config['sources'][number], 'schedule' | 'maxAge'>): ConsoleSource {
  return {
    ...source,
    schedule,
    objectiveSeconds: maxAge,
    nextSlot: (now) => nextSlot(schedule, now),
  };
}
