/** The operators' listener: queues and metrics, closed to everybody without the token. */
import Fastify, { type FastifyError, type FastifyInstance } from 'fastify';
import { accessCheck, CHALLENGES, isOwnSite } from './access.ts';
import type { ShownQueues } from './board.ts';

export interface OpsDependencies {
  /** Bearer token, or password of HTTP Basic with any user. Undefined: all but the health check stays closed. */
  readonly token: string | undefined;
  /** Prometheus' text format, version 0.0.4. */
  metrics(): Promise<string>;
  /** The queues to show; a function is asked again at every look. None where there is no queue: nothing links to them. */
  readonly queues: ShownQueues;
}

const HEALTH = '/healthz';
/** Where the board is. */
const BOARD = '/queues';

/** Nothing is fetched from elsewhere. */
const HEADERS = {
  'cache-control': 'no-store',
  'content-security-policy':
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self' data:; object-src 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
};

const CLOSED =
  'The operators\u2019 pages are closed, since OPS_TOKEN is not set. Set it, e.g. to what `openssl rand -base64 18` prints, and start again.\n';

const QUEUES = `
  <li><a href="${BOARD}">Queues</a>: jobs that wait, run, are done or failed`;
const page = (hasQueues: boolean): string => `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Fleetbook operations</title>
<style>
  :root { color-scheme: light dark }
  body { font: 16px/1.6 system-ui, sans-serif; max-width: 38rem; margin: 4rem auto; padding: 0 1rem }
</style>
<h1>Fleetbook operations</h1>
<ul>${hasQueues ? QUEUES : ''}
  <li><a href="/metrics">Metrics</a>, for Prometheus
</ul>
</html>
`;

/** Builds the listener; nothing listens yet. */
export async function buildOps(deps: OpsDependencies): Promise<FastifyInstance> {
  const isAllowed = deps.token === undefined ? undefined : accessCheck(deps.token);
  const app = Fastify({
    logger: false,
    // The board asks again every few seconds: its connections would otherwise hold up the end.
    forceCloseConnections: true,
    requestTimeout: 20_000,
    http: { headersTimeout: 10_000 },
  });

  app.addHook('onRequest', async (request, reply) => {
    reply.headers(HEADERS);
    if (request.routeOptions.url === HEALTH) return undefined;
    if (isAllowed === undefined) {
      // No challenge: there is no password that would do.
      return reply.code(403).type('text/plain; charset=utf-8').send(CLOSED);
    }
    if (!isAllowed(request.headers.authorization)) {
      return reply
        .code(401)
        .header('www-authenticate', CHALLENGES)
        .type('text/plain; charset=utf-8')
        .send('OPS_TOKEN is asked for: as bearer token, or as the password of any user.\n');
    }
    if (request.method !== 'GET' && request.method !== 'HEAD' && !isOwnSite(request.headers)) {
      return reply.code(403).type('text/plain; charset=utf-8').send('Another site may not act here.\n');
    }
    return undefined;
  });
  app.setErrorHandler((error: FastifyError, _, reply) => {
    const status = error.statusCode !== undefined && error.statusCode < 500 ? error.statusCode : 500;
    return reply.code(status).type('text/plain; charset=utf-8').send('This did not work.\n');
  });
  app.setNotFoundHandler((_, reply) =>
    reply.code(404).type('text/plain; charset=utf-8').send('Nothing here.\n'),
  );

  app.get(HEALTH, async () => ({ status: 'ok' }));
  const hasQueues = typeof deps.queues === 'function' || deps.queues.length > 0;
  app.get('/', async (_, reply) => reply.type('text/html; charset=utf-8').send(page(hasQueues)));
  app.get('/metrics', async (_, reply) =>
    reply.type('text/plain; version=0.0.4; charset=utf-8').send(await deps.metrics()),
  );
  if (hasQueues) {
    // Large, and of no use to a reader.
    const { addBoard } = await import('./board.ts');
    await addBoard(app, BOARD, deps.queues);
  }
  return app;
}
