import Fastify, { type FastifyError, type FastifyInstance, type FastifyRequest } from 'fastify';
import { audit } from '../db/audit.ts';
import type { Database } from '../db/connection/connect.ts';
import { isLostConnection } from '../db/connection/errors.ts';
import { BadInput } from '../domain/input.ts';
import { withoutBodies } from '../http/protocol/bodies.ts';
import { limitConnections } from '../http/protocol/connection-limits.ts';
import { answerBefore } from '../http/protocol/drain.ts';
import { isProxyOf } from '../http/protocol/request.ts';
import { deciderOf, refuse, type SignedIn, wantsPage } from './access.ts';
import { addGuard } from './check-requests.ts';
import type { OpsDependencies, OpsPart } from './feature-routes.ts';
import { escaped, metricsPage, page } from './pages.ts';

const HEALTH = '/healthz';
const BOARD = '/queues';
/** Operators and scrapers are few; a browser opens six connections. */
const CONNECTIONS = 512;
const IDLE_MS = 5000;
const CHECK_EVERY_MS = 1000;

const HEADERS = {
  'cache-control': 'no-store',
  'content-security-policy':
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self' data:; object-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'",
  // With no-referrer, forms of older browsers would send no proof of their origin.
  'referrer-policy': 'same-origin',
  'x-content-type-options': 'nosniff',
};

const BAD_ADDRESS =
  'It has a sign % without two hexadecimal digits behind it. Write %25 for the sign itself, or open the page by its link.';

const NO_TEXT = 'It has a NUL character (%00), which no text of Fleetbook has. Open the page by its link.';

const QUEUES = `
  <li><a href="${BOARD}">Queues</a>: waiting, running, completed and failed jobs`;
const SIGN_OUT = `
<form method="post" action="/logout"><button>Sign out</button></form>`;
const firstPage = (hasQueues: boolean, signedIn: SignedIn | undefined): string =>
  page(
    'Pages',
    `<h1>Fleetbook operations</h1>
<p>Signed in: ${escaped(signedIn?.name ?? '')}, ${signedIn?.role}</p>
<ul>${hasQueues ? QUEUES : ''}
  <li><a href="/metrics">Metrics</a>, for Prometheus
</ul>${signedIn?.bySession ? SIGN_OUT : ''}`,
  );

export async function buildOps(deps: OpsDependencies): Promise<FastifyInstance> {
  const app = Fastify({
    logger: false,
    ...(deps.trustProxy && { trustProxy: [...deps.trustProxy] }),
    // The board sends requests every few seconds: its connections would delay the end of the process.
    forceCloseConnections: true,
    requestTimeout: 20_000,
    http: { headersTimeout: 10_000 },
    // The address has no route, so no hook runs.
    frameworkErrors: (_, request, reply) => void refuse(request, reply.headers(HEADERS), 400, BAD_ADDRESS),
  });

  app.addHook('onRequest', async (request, reply) => {
    reply.headers(HEADERS);
    // PostgreSQL stores no such text, and fails if it is a parameter.
    if (/%00/.test(request.url)) return refuse(request, reply, 400, NO_TEXT);
    return undefined;
  });
  const failed = (error: FastifyError, { method, routeOptions }: FastifyRequest): void => {
    // The log states an outage once, and not for each request.
    if (!isLostConnection(error))
      deps.logger?.warn({ err: error, method, route: routeOptions.url }, 'a request of an operator failed');
  };
  app.setErrorHandler((error: FastifyError, request, reply) => {
    const status = error.statusCode !== undefined && error.statusCode < 500 ? error.statusCode : 500;
    if (status === 500) failed(error, request);
    return refuse(request, reply, status, 'This did not work.');
  });
  app.setNotFoundHandler((request, reply) => refuse(request, reply, 404, 'Nothing here.'));

  const { parts = [], db } = deps;
  answerBefore(app.server, (ordinary) =>
    withoutBodies(ordinary, (_, response) => void response.writeHead(400).end()),
  );
  app.server.on('checkExpectation', (_, response) => {
    // Its body is not read.
    response.writeHead(417, { connection: 'close' }).end();
  });
  const admission = limitConnections(app.server, {
    max: deps.connections ?? CONNECTIONS,
    setting: 'connections of the operators’ port',
    idleMs: IDLE_MS,
    checkEveryMs: CHECK_EVERY_MS,
    probes: [HEALTH],
    isProxy: isProxyOf(deps.trustProxy ?? []),
    refuse: (_, response) => void response.writeHead(503, { 'retry-after': '1' }).end(),
    logger: deps.logger,
  });
  app.addHook('onSend', (request, reply, payload, done) => {
    admission.answers(request.raw, reply.raw, reply.statusCode);
    done(null, payload);
  });
  await addGuard(app, deps, ({ raw }) => admission.admit(raw.socket));

  app.get(HEALTH, { config: { access: 'public' } }, async () => ({ status: 'ok' }));
  const hasQueues = deps.queues.length > 0;
  for (const { addPages } of parts) addPages?.(app);
  if (!app.hasRoute({ method: 'GET', url: '/' }))
    app.get('/', async (request, reply) =>
      reply.type('text/html; charset=utf-8').send(firstPage(hasQueues, request.signedIn)),
    );
  await addApi(app, parts, failed);
  app.get('/metrics', async (request, reply) => {
    const metrics = await deps.metrics();
    return wantsPage(request)
      ? reply.type('text/html; charset=utf-8').send(metricsPage(metrics))
      : reply.type('text/plain; version=0.0.4; charset=utf-8').send(metrics);
  });
  if (hasQueues) {
    // The board lies outside the bundle, and a reader has no queues.
    const { addBoard } = await import('./queues-page.ts');
    const record = db && ((request: FastifyRequest) => recordQueueChange(db, request));
    await addBoard(app, BOARD, deps.queues, record);
  }
  return app;
}

/** Writes the row before the change: queues are in Redis, outside the transactions of PostgreSQL. */
async function recordQueueChange(db: Database, request: FastifyRequest): Promise<void> {
  const { queueName } = request.params as { queueName?: string };
  const [path] = request.url.split('?');
  await audit(db, deciderOf(request), {
    action: 'queue.change',
    subject: { kind: 'queue', id: queueName ?? '-' },
    details: { method: request.method, path },
  });
}

/** Adds the routes of all parts. An error is `{"error": "…"}`, with the `field` if one is wrong. */
async function addApi(
  app: FastifyInstance,
  parts: readonly OpsPart[],
  failed: (error: FastifyError, request: FastifyRequest) => void,
): Promise<void> {
  const adding = parts.flatMap(({ addApi }) => addApi ?? []);
  if (adding.length === 0) return;
  const changed = async () => {
    await Promise.all(parts.map((part) => part.changed?.()));
  };
  await app.register(
    (api, _, done) => {
      api.setErrorHandler((error: FastifyError, request, reply) => {
        const status = error instanceof BadInput ? 400 : (error.statusCode ?? 500);
        if (status >= 500) failed(error, request);
        const text = status < 500 ? error.message : 'an internal error occurred; see the log of the process';
        const field = error instanceof BadInput ? { field: error.field } : {};
        return reply.code(status).send({ error: text, ...field });
      });
      api.setNotFoundHandler((request, reply) =>
        reply.code(404).send({ error: `there is no ${request.url.split('?')[0]}` }),
      );
      for (const add of adding) add(api, { changed });
      done();
    },
    { prefix: '/api' },
  );
}
