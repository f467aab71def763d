/** Files of the whole catalogue: a worker makes them, and readers serve them. See docs/exports.md. */
import { databaseUrls } from '../../app/connections.ts';
import type { Feature } from '../../app/feature.ts';
import { settingsOf } from '../../config/settings.ts';
import { withTimeout } from '../../domain/servers/timeout.ts';
import { findBehind } from './conditions.ts';
import { checkExports } from './doctor.ts';
import { exportNowAndThen } from './job.ts';
import { addExportSeries } from './metrics.ts';
import { exportsApi } from './routes.ts';
import { EXPORT_SETTINGS } from './settings.ts';
import { exportReader } from './stored-exports.ts';

/** Connections of a reader for downloads. Other answers do not wait behind them. */
const CONNECTIONS = 2;
/** Milliseconds that the thread gets to end when the worker stops. */
const END_WITHIN_MS = 3000;

export const exportsFeature: Feature = {
  name: 'exports',
  settings: EXPORT_SETTINGS,

  read: ({ openReads }) => ({
    api: exportsApi(exportReader({ reads: openReads(CONNECTIONS), now: Date.now })),
  }),

  work({ config, store: { sql }, logger, registry, closing }) {
    const { EXPORT_EVERY: every } = settingsOf(config, EXPORT_SETTINGS);
    const observe = registry && addExportSeries(registry, sql, every);
    if (every === 0) return;
    const job = exportNowAndThen({ sql, ...databaseUrls(config), everyMs: every * 1000, logger, observe });
    closing.defer(() => withTimeout(END_WITHIN_MS, job[Symbol.asyncDispose]()));
  },

  conditions: {
    kinds: {
      exports_behind:
        'for more than an hour, and two intervals, no files of the changed catalogue could be made',
    },
    find: findBehind,
  },
  check: checkExports,
};
