/** The console: its page, what the page asks for, and what it may do. */
import type { FastifyError, FastifyInstance } from 'fastify';
import type { OpsPart } from '../../../app/feature.ts';
import type { Sql } from '../../../db/connection/client.ts';
import type { Database } from '../../../db/connection/connect.ts';
import { areRatesNeeded } from '../../../db/currency.ts';
import { pendingBatches } from '../../../db/held.ts';
import { activityMark } from '../../../db/operating.ts';
import { hiddenReasons } from '../../../db/quarantine.ts';
import { sourceStrips } from '../../../db/runs.ts';
import { sourceStatus } from '../../../db/sources.ts';
import type { AcknowledgedAlert } from '../../../domain/acknowledgement.ts';
import { withTimeout } from '../../../domain/timeout.ts';
import type { ShownQueues } from '../../../ops/board.ts';
import type { Overview, QueueDepth } from './api.ts';
import { addAssets } from './assets.ts';
import { addAudit } from './audit.ts';
import { addChanges } from './changes.ts';
import { addCharts } from './charts.ts';
import { addClusters } from './clusters.ts';
import { changeFeed } from './events.ts';
import { addHeld, type HeldActions } from './held.ts';
import { addMachines } from './machines.ts';
import { addOperators } from './operators.ts';
import { type AdministrationActions, addOrganizations } from './organizations.ts';
import { type ConsoleSource, judgeSources, type Stored } from './overview.ts';
import { Away, BadRequest } from './parameters.ts';
import { shared } from './shared.ts';
import { addSourceActions, type SourceActions } from './source-actions.ts';
import { addSources, type RunActions } from './sources.ts';
import { addTokens } from './tokens.ts';

export interface ConsoleDependencies {
  /** Acts as the worker, which sees every organization; with a statement timeout of its own. */
  readonly sql: Sql;
  readonly db: Database;
  /** Those that are configured. */
  readonly sources: readonly ConsoleSource[];
  /** Where the built page is. */
  readonly folder: string;
  readonly held: HeldActions;
  readonly administration: AdministrationActions;
  readonly sourceActions: SourceActions;
  /** Routes of other features. */
  readonly parts: readonly OpsPart[];
  /** Finds open alerts that an operator has acknowledged. */
  readonly acknowledged: (sql: Sql) => Promise<readonly AcknowledgedAlert[]>;
  /** Undefined where this process has no queue. */
  readonly runs?: RunActions | undefined;
  readonly now?: () => Date;
  /** Milliseconds between two looks for something new, while a page is open. */
  readonly lookEveryMs?: number;
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
/** For so long what was read is given again to whoever asks, unless something happens. */
const STORED_MS = 500;
/** How long the queues' Redis may take to say how much waits. */
const QUEUES_WITHIN_MS = 1000;

/** Adds the console. Who may ask is checked before. */
export async function addConsole(
  app: FastifyInstance,
  deps: ConsoleDependencies,
  queues: ShownQueues,
): Promise<void> {
  const { sql, sources } = deps;
  const now = deps.now ?? (() => new Date());
  addAssets(app, deps.folder, PAGES);
  await app.register(
    (api, _, done) => {
      api.setErrorHandler((error: FastifyError, _, reply) => {
        const status = error.statusCode ?? 500;
        const isToBeTold = status < 500 || error instanceof Away;
        const text = isToBeTold ? error.message : 'this did not work; the log of the process may say why';
        const field = error instanceof BadRequest ? { field: error.field } : {};
        return reply.code(status).send({ error: text, ...field });
      });
      api.setNotFoundHandler((request, reply) =>
        reply.code(404).send({ error: `there is no ${request.url.split('?')[0]}` }),
      );
      const feed = changeFeed(
        () => activityMark(sql),
        () => stored.forget(),
        deps.lookEveryMs,
      );
      // Before the server waits for its connections to end, which these would not do by themselves.
      api.addHook('preClose', async () => feed[Symbol.dispose]());
      api.get('/events', (request, reply) => feed.open(request, reply));

      const stored = shared(async (): Promise<Stored> => {
        const [status, strips, pending, acknowledged] = await Promise.all([
          sourceStatus(sql),
          sourceStrips(sql, STRIP),
          pendingBatches(sql),
          deps.acknowledged(sql),
        ]);
        const empty = status.filter(({ published }) => published === 0).map(({ id }) => id);
        const hidden = empty.length > 0 ? await hiddenReasons(sql, empty) : [];
        const isNeeded = await areRatesNeeded(sql, sources, status);
        return { status, strips, pending, acknowledged, hidden, areRatesNeeded: isNeeded };
      }, STORED_MS);
      api.get('/overview', async (): Promise<Overview> => {
        const [facts, depths] = await Promise.all([stored(), queueDepths(queues)]);
        const at = now();
        return { now: at.toISOString(), ...judgeSources(sources, facts, at), queues: depths };
      });
      addSources(api, { sql, sources, stored, runs: deps.runs, now });
      addMachines(api, sql);
      addChanges(api, sql, now);
      addCharts(api, { sql, queues, now });
      const changed = () => feed.look();
      for (const { addApi } of deps.parts) addApi?.(api, { changed });
      addHeld(api, { sql, actions: deps.held, changed });
      addClusters(api, sql);
      addAudit(api, sql, now);
      addOperators(api, deps.db);
      const administration = { sql, actions: deps.administration, now, changed };
      addOrganizations(api, administration);
      addTokens(api, administration);
      const configured = new Set(sources.map(({ id }) => id));
      addSourceActions(api, { actions: deps.sourceActions, configured, changed });
      done();
    },
    { prefix: '/api' },
  );
}

async function queueDepths(queues: ShownQueues): Promise<QueueDepth[] | null> {
  const shown = typeof queues === 'function' ? queues() : queues;
  let depths: QueueDepth[] | null = null;
  const asked = Promise.all(
    shown.map(async (queue) => {
      const { waiting = 0, active = 0, delayed = 0, failed = 0 } = await queue.getJobCounts();
      return { name: queue.name, waiting, active, delayed, failed };
    }),
  ).then((found) => {
    depths = found;
  });
  await withTimeout(QUEUES_WITHIN_MS, asked).catch(() => false);
  return depths;
}
