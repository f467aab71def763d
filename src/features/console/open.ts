/** Puts the console together: connections for its pages, and what the configuration says about sources. */
import type { OpsContext } from '../../app/feature.ts';
import type { Config } from '../../config/config.ts';
import { inPackage } from '../../config/package.ts';
import { pricedSource } from '../../config/priced-source.ts';
import { databaseUrl } from '../../config/settings.ts';
import { openStore } from '../../db/connection/connect.ts';
import type { PricedSource } from '../../domain/exchange-rates.ts';
import { nextSlot } from '../../domain/schedule.ts';
import type { OpsPart } from '../../ops/part.ts';
import { type ConsoleDependencies, consolePart } from './part.ts';
import type { ConsoleSource } from './routes/overview.ts';

/** An operator does not wait longer for a page. */
const STATEMENT_TIMEOUT_MS = 15_000;

/** @param timing of tests */
export function openConsole(
  { config, env, closing, queues, syncQueue, openWriter, openAlerts }: OpsContext,
  timing: Pick<ConsoleDependencies, 'lookEveryMs'> = {},
): OpsPart {
  const { sql } = closing.use(
    openStore({
      url: databaseUrl(config),
      role: 'worker',
      connections: 4,
      statementTimeoutMs: STATEMENT_TIMEOUT_MS,
      applicationName: 'fleetbook console',
    }),
  );
  return consolePart({
    config,
    env,
    queues,
    syncQueue,
    openWriter,
    sql,
    sources: config.sources.map((source) => {
      const { schedule, maxAge } = source;
      return consoleSource({ ...pricedSource(source, config.settings), schedule, maxAge });
    }),
    folder: inPackage('dist', 'console'),
    openAlerts,
    ...timing,
  });
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
