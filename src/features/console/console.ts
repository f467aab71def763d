import type { OpsContext } from '../../app/feature.ts';
import { pricedSource } from '../../config/named-sources.ts';
import { inPackage } from '../../config/package.ts';
import { databaseUrl } from '../../config/settings.ts';
import { alertActivity, openAlerts } from '../../db/alerts.ts';
import type { Database } from '../../db/connection/client.ts';
import { openStore } from '../../db/connection/connect.ts';
import { sql } from '../../db/connection/drizzle.ts';
import { readSourceFacts, workerProblem } from '../../db/problems.ts';
import type { OpsPart } from '../../ops/feature-routes.ts';
import { shared } from '../../ops/shared-reads.ts';
import { lastWorkerSign } from '../../sync/runs/slots.ts';
import { sourceStrips } from './queries/runs.ts';
import { MARK, type Overview } from './routes/answers.ts';
import { addAssets } from './routes/assets.ts';
import { addAudit } from './routes/audit.ts';
import { addChanges } from './routes/changes.ts';
import { addClusters } from './routes/clusters.ts';
import type { ConsoleContext } from './routes/context.ts';
import { addCosts } from './routes/costs/costs.ts';
import { changeFeed } from './routes/events.ts';
import { addHeld } from './routes/held.ts';
import { addLifecycle } from './routes/lifecycle.ts';
import { addMachines } from './routes/machines.ts';
import { addOrganizations } from './routes/organizations.ts';
import { judgeSources, otherProblems, type Stored } from './routes/overview.ts';
import { addCharts } from './routes/overview-charts.ts';
import { queueDepths } from './routes/queues.ts';
import { addSourceActions } from './routes/source-actions.ts';
import { addSources } from './routes/sources.ts';
import { addTokens } from './routes/tokens.ts';

/** Longest time of a statement: an operator does not wait longer for a page. */
const STATEMENT_TIMEOUT_MS = 15_000;
const PAGES = [
  '/',
  '/sources/:id',
  '/runs/:id',
  '/changes',
  '/held/:batch?',
  '/machines/:id?',
  '/clusters/:id?',
  '/lifecycle',
  '/organizations/:slug?',
  '/audit',
  '/alerts',
  '/operators',
];
const STRIP = 24;
/** Cache time of the overview (ms); any change invalidates it earlier. */
const OVERVIEW_MS = 500;

export function openConsole(context: OpsContext, checkEveryMs?: number): OpsPart {
  const { config, queues } = context;
  const { db } = context.closing.use(
    openStore({
      url: databaseUrl(config),
      role: 'worker',
      connections: 4,
      statementTimeoutMs: STATEMENT_TIMEOUT_MS,
      applicationName: 'fleetbook console',
    }),
  );
  const sources = config.sources.map((source) => {
    const { schedule, maxAge } = source;
    return { ...pricedSource(source, config.settings), schedule, maxAge };
  });
  const stored = shared(async (): Promise<Stored> => {
    const [facts, strips, alerts] = await Promise.all([
      readSourceFacts(db, sources),
      sourceStrips(db, STRIP),
      openAlerts(db),
    ]);
    return { ...facts, strips, alerts };
  }, OVERVIEW_MS);
  const listeners = [stored.invalidate];
  const feed = changeFeed(
    () => activityMark(db),
    () => {
      for (const listener of listeners) listener();
    },
    checkEveryMs,
  );
  return {
    addPages: (app) => addAssets(app, inPackage('dist', 'console'), PAGES),
    addApi(api, { changed }) {
      const addChangeListener = (listener: () => void) => void listeners.push(listener);
      const routes: ConsoleContext = { ...context, db, sources, stored, changed, addChangeListener };
      // The streams must end before the server waits for the end of its connections.
      api.addHook('preClose', async () => feed[Symbol.dispose]());
      api.addHook('preHandler', async ({ method, url }, reply) => {
        if (method !== 'GET' || url === '/api/events') return;
        const mark = await feed.mark();
        if (mark !== undefined) reply.header(MARK, mark);
      });
      api.get('/events', (request, reply) => feed.open(request, reply));
      api.get('/overview', async (): Promise<Overview> => {
        const [facts, depths, sign] = await Promise.all([stored(), queueDepths(queues), lastWorkerSign(db)]);
        const now = new Date();
        return {
          now: now.toISOString(),
          ...judgeSources(sources, facts, now),
          otherProblems: otherProblems(workerProblem(sign, now), depths, facts.alerts),
          queues: depths,
        };
      });
      addSources(api, routes);
      addMachines(api, routes);
      addChanges(api, routes);
      addCharts(api, routes);
      addHeld(api, routes);
      addClusters(api, routes);
      addLifecycle(api, routes);
      addAudit(api, routes);
      addOrganizations(api, routes);
      addTokens(api, routes);
      addCosts(api, routes);
      addSourceActions(api, routes);
    },
    changed: () => feed.changed(),
  };
}

/**
 * Returns a text that changes when a run begins or ends, a batch is held or decided, an operator changes something, or an alert
 * changes. The console compares it with the previous one. It costs one index lookup per source.
 */
export async function activityMark(db: Database): Promise<string> {
  const [[row], ofAlerts] = await Promise.all([
    db.execute<{ mark: string }>(sql`
      select md5(concat_ws(',',
        (select string_agg(concat_ws(':', s.id, s.fence, s.retired_at, s.disabled_at, r.id, r.outcome), ',' order by s.id)
          from sources s left join lateral (
            select x.id, x.outcome from sync_runs x where x.source_id = s.id order by x.id desc limit 1
          ) r on true),
        (select string_agg(concat_ws(':', b.id, b.status, b.decided_at, b.undone_at), ',' order by b.id)
          from held_batches b where b.status <> 'superseded'),
        (select max(id) from audit_log))) as mark`),
    alertActivity(db),
  ]);
  return `${row?.mark} ${ofAlerts}`;
}
