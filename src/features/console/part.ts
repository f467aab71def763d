/** The console: its page, what the page asks for, and what it may do. */
import type { Writing } from '../../app/actions/publish.ts';
import type { OpsContext } from '../../app/feature.ts';
import type { Sql } from '../../db/connection/client.ts';
import { areRatesNeeded } from '../../db/currency.ts';
import { pendingBatches } from '../../db/held-batches.ts';
import { hiddenReasons } from '../../db/quarantine.ts';
import { sourceStrips } from '../../db/runs/records.ts';
import { sourceStatus } from '../../db/sources.ts';
import { withTimeout } from '../../lib/timeout.ts';
import type { OpsPart } from '../../ops/part.ts';
import { activityMark } from './activity.ts';
import type { Overview, QueueDepth } from './routes/api.ts';
import { addAssets } from './routes/assets.ts';
import { addAudit } from './routes/audit.ts';
import { addChanges } from './routes/changes.ts';
import { addCharts } from './routes/charts.ts';
import { addClusters } from './routes/clusters.ts';
import { changeFeed } from './routes/events.ts';
import { addHeld } from './routes/held.ts';
import { addMachines } from './routes/machines.ts';
import { addOrganizations } from './routes/organizations.ts';
import { type ConsoleSource, judgeSources, type Stored } from './routes/overview.ts';
import { shared } from './routes/shared.ts';
import { addSourceActions } from './routes/source-actions.ts';
import { addSources } from './routes/sources.ts';
import { addTokens } from './routes/tokens.ts';

export interface ConsoleDependencies
  extends Pick<OpsContext, 'config' | 'env' | 'queues' | 'syncQueue' | 'openAlerts'> {
  /** In the worker's role, which sees every organization; with the console's statement timeout. */
  readonly sql: Sql;
  /** Opens what changes are written and published with, at the first use. */
  openWriter(): Writing;
  /** Those that are configured. */
  readonly sources: readonly ConsoleSource[];
  /** Where the built page is. */
  readonly folder: string;
  readonly now?: () => Date;
  /** Milliseconds between two looks for something new, while a page is open. */
  readonly lookEveryMs?: number | undefined;
}

/** The page's own paths: it tells them apart itself. */
const PAGES = [
  ...['/', '/sources/:id', '/runs/:id', '/changes', '/held', '/held/:batch', '/machines', '/machines/:id'],
  ...[
    '/clusters',
    '/clusters/:id',
    '/organizations',
    '/organizations/:slug',
    '/audit',
    '/alerts',
    '/operators',
  ],
];

/** Runs of each source that the overview shows. */
const STRIP = 24;
/** Cache time of the overview (ms); any change invalidates it earlier. */
const STORED_MS = 500;
/** How long the queues' Redis may take to say how much waits. */
const QUEUES_WITHIN_MS = 1000;

/** The page, and the API behind it. The server checks the role of the operator before. */
export function consolePart(deps: ConsoleDependencies): OpsPart {
  const { sql, config, env, sources, queues, syncQueue, openWriter, openAlerts } = deps;
  const now = deps.now ?? (() => new Date());
  const stored = shared(async (): Promise<Stored> => {
    const [status, strips, pending, open] = await Promise.all([
      sourceStatus(sql),
      sourceStrips(sql, STRIP),
      pendingBatches(sql),
      openAlerts?.acknowledged(sql) ?? [],
    ]);
    const empty = status.filter(({ published }) => published === 0).map(({ id }) => id);
    const hidden = empty.length > 0 ? await hiddenReasons(sql, empty) : [];
    const isNeeded = await areRatesNeeded(sql, sources, status);
    return { status, strips, pending, acknowledged: open, hidden, areRatesNeeded: isNeeded };
  }, STORED_MS);
  const feed = changeFeed(
    () => activityMark(sql, openAlerts),
    () => stored.forget(),
    deps.lookEveryMs,
  );
  return {
    addPages: (app) => addAssets(app, deps.folder, PAGES),
    addApi(api, { changed }) {
      // Before the server waits for its connections to end, which these would not do by themselves.
      api.addHook('preClose', async () => feed[Symbol.dispose]());
      api.get('/events', (request, reply) => feed.open(request, reply));
      api.get('/overview', async (): Promise<Overview> => {
        const [facts, depths] = await Promise.all([stored(), queueDepths(queues)]);
        const at = now();
        return { now: at.toISOString(), ...judgeSources(sources, facts, at), queues: depths };
      });
      addSources(api, { sql, sources, stored, syncQueue, openWriter, now });
      addMachines(api, sql);
      addChanges(api, sql, now);
      addCharts(api, { sql, queues, openAlerts, now });
      addHeld(api, { sql, config, openWriter, changed });
      addClusters(api, sql);
      addAudit(api, sql, now);
      const administration = { sql, openWriter, now, changed };
      addOrganizations(api, administration);
      addTokens(api, administration);
      addSourceActions(api, { config, env, openWriter, changed });
    },
    changed: () => feed.look(),
  };
}

async function queueDepths(queues: OpsContext['queues']): Promise<QueueDepth[] | null> {
  let depths: QueueDepth[] | null = null;
  const asked = Promise.all(
    queues.map(async (queue) => {
      const { waiting = 0, active = 0, delayed = 0, failed = 0 } = await queue.getJobCounts();
      return { name: queue.name, waiting, active, delayed, failed };
    }),
  ).then((found) => {
    depths = found;
  });
  await withTimeout(QUEUES_WITHIN_MS, asked).catch(() => false);
  return depths;
}
