import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import { databaseUrls } from '../../app/connections.ts';
import type { Disposer } from '../../app/disposer.ts';
import type { ReaderContext, ReaderPart } from '../../app/feature.ts';
import type { Config } from '../../config/config.ts';
import { settingsOf } from '../../config/settings.ts';
import type { Store } from '../../db/connection/connect.ts';
import { steadyNow } from '../../domain/steady-now.ts';
import { withTimeout } from '../../domain/timeout.ts';
import { runExports } from './job.ts';
import { addExportSeries } from './metrics.ts';
import { exportsApi } from './routes.ts';
import { EXPORT_SETTINGS } from './settings.ts';
import { exportReader } from './stored-exports.ts';

/** Connections of a reader for downloads. Other answers do not wait behind them. */
const CONNECTIONS = 2;
const END_WITHIN_MS = 3000;

export const readExports = ({ openReads }: ReaderContext): ReaderPart => ({
  api: exportsApi(exportReader(openReads(CONNECTIONS), steadyNow)),
});

interface WorkerParts {
  readonly config: Config;
  readonly logger: Logger;
  readonly closing: Disposer;
  readonly store: Store;
  /** Undefined in a worker without metrics. */
  readonly registry: Registry | undefined;
}

export function makeExports({ config, store: { sql }, logger, registry, closing }: WorkerParts): void {
  const { EXPORT_EVERY: every } = settingsOf(config, EXPORT_SETTINGS);
  const observe = registry && addExportSeries(registry, sql, every);
  if (every === 0) return;
  const job = runExports({ sql, ...databaseUrls(config), everyMs: every * 1000, logger, observe });
  closing.defer(() => withTimeout(END_WITHIN_MS, job[Symbol.asyncDispose]()));
}
